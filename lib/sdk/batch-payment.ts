import { ledgerOfBalance, syncBalance } from '#lib/wallet/balance.ts'
import { buildMerge, proveTransferAhead, signSpending } from '#lib/wallet/calls.ts'
import type { Opening } from '#lib/wallet/commitment.ts'
import { encryptForSelf } from '#lib/wallet/own-amount.ts'
import { readSource, untilSeen } from '#lib/wallet/transaction.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'
import { countedOf, makeReady, requireSame } from './batch-ready.ts'
import type { BatchRequest } from './batch-request.ts'
import { finish, owed, type PaidBatch, SEEN_MS } from './batch-result.ts'
import { findPaidBefore, notePayouts, type PastPayments, requireNew } from './paid-payouts.ts'
import { isTransient, patiently, pause } from './patience.ts'
import { type BatchState, type Payee, readBatch } from './payees.ts'
import { PayrollError, take } from './payroll-client.ts'
import { requireCovered } from './run-balance.ts'
import { requireNoneOwn, revokeOwn } from './run-delegations.ts'
import { RunError } from './run-error.ts'
import { sponsorCall } from './sponsored-call.ts'
import { inTurn } from './turns.ts'

/** How many attempts may fail in a row without a new payment on the ledger. */
const ATTEMPTS = 3
const AGAIN_MS = 2_000

/**
 * Pays a batch by the holder's own transfers, one after the other, whose fees the service pays: locks a draft, and proves each
 * transfer while the one before is on its way. It takes the account's turn (`inTurn`). A second call after an interruption continues:
 * what the ledger shows as paid is not paid again, and only what it shows is called paid. An abort ends the call between two transfers.
 * @throws RunError; WalletError `balance-too-low` before the batch is locked, `history-incomplete`; PayrollError; LedgerError
 */
export async function payBatch(given: BatchRequest): Promise<PaidBatch> {
  const { holder, say, progress, payees, signal } = given
  const request = signal ? { ...given, deployment: { ...given.deployment, signal } } : given
  let seen = -1
  for (let failures = 0; ; ) {
    const { before, problem } = await inTurn(holder.address, () => payUnpaid(request), request.signal)
    if (problem === undefined) {
      progress?.({ step: 'checking', done: payees.length, of: payees.length })
      return await finish(request, before)
    }
    failures = before.paid.size > seen ? 1 : failures + 1
    seen = before.paid.size
    if (failures === ATTEMPTS) throw problem
    say(`Trying again: ${problem.message}`)
    // Nodes lag by seconds.
    await pause(AGAIN_MS, request.signal)
  }
}

/** A payout to be paid, and its payee. */
interface Line {
  payout: string
  payee: Payee
}

/** What was paid before an attempt, and why it has not paid everything else. */
interface Attempt {
  before: PastPayments
  problem?: Error
}

/**
 * Pays every unpaid payout. Balance and sequence number are read before the payments: an earlier transfer that is applied after that
 * changes both, and what is signed here is then void. The payments are read through the balance's ledger at least: nodes differ.
 */
async function payUnpaid(request: BatchRequest): Promise<Attempt> {
  const { deployment, holder, client, batch, signal, progress, payees } = request
  const patient = <Result>(work: () => Promise<Result>) => patiently(work, { signal })
  const read = async () => {
    const state = await patient(() => readBatch(client, batch))
    requireSame(request, state)
    return state
  }
  progress?.({ step: 'looking', done: 0, of: payees.length })
  await requireNoRun(request)
  await untilDecided(request, read)
  const source = await patient(() => readSource(deployment, holder.signer, {}))
  const balance = await patient(() => syncBalance(deployment, holder))
  const before = await patient(async () =>
    findPaidBefore(request, countedOf(request, await read()), ledgerOfBalance(balance)),
  )
  const checked = async () => {
    const state = await read()
    // Also the payouts that have been added since: nothing is signed that was not checked and noted.
    requireNew(request, before, countedOf(request, state))
    notePayouts(request, countedOf(request, state))
    return state
  }
  const present = await checked()
  // A pending payout is not paid here.
  const isPending = new Set(present.payouts.flatMap((one) => (one.status === 'pending' ? [one.contractorId] : [])))
  const toPay = owed(request, before, present).filter(({ contractor }) => !isPending.has(contractor))
  const needed = toPay.reduce((sum, { amount }) => sum + amount, 0n)
  requireCovered(needed, balance.spendable.value + balance.receiving.value)
  progress?.({ step: 'sealing', done: 0, of: payees.length })
  await patient(() => makeReady(request, (missing) => encryptAll(request, missing)))
  const lines = linesOf(request, before, await checked())
  let { spendable } = balance
  try {
    if (spendable.value < lines.reduce((sum, { payee }) => sum + payee.amount, 0n)) {
      const merge = await buildMerge(deployment, holder.signer, balance, { source })
      await sponsorCall(client, merge.signedXdr, deployment.rpc)
      spendable = merge.next ?? spendable
    }
    await payInOrder(request, lines, { source, spendable })
    return { before }
  } catch (error) {
    if (!(error instanceof Error) || !isOvertaken(error)) throw error
    return { before, problem: error }
  }
}

const encryptAll = ({ holder, batch }: BatchRequest, missing: readonly Payee[]) =>
  Promise.all(
    missing.map(async (payee) => {
      const { contractor, amount } = payee
      return { payee, encryptedAmount: await encryptForSelf(holder, { batch, contractor }, amount) }
    }),
  )

/** The unpaid payouts. Those that are pending are being paid by someone else. */
function linesOf({ payees }: BatchRequest, before: PastPayments, { payouts }: BatchState): Line[] {
  const listed = new Map(payees.map((payee) => [payee.contractor, payee]))
  return payouts.flatMap(({ id: payout, contractorId, status }) => {
    const payee = listed.get(contractorId)
    const isUnpaid = (status === 'ready' || status === 'failed') && !before.paid.has(payout)
    return isUnpaid && payee ? [{ payout, payee }] : []
  })
}

type Source = Awaited<ReturnType<typeof readSource>>

/** Each transfer begins with the balance and the sequence number that the one before leaves. */
async function payInOrder(
  request: BatchRequest,
  lines: readonly Line[],
  { source, spendable }: { source: Source; spendable: Opening },
): Promise<void> {
  const { deployment, holder, signal, progress, payees } = request
  const prove = (line: Line | undefined, opening: Opening) => {
    if (!line) return undefined
    const { address: to, amount } = line.payee
    const proof = proveTransferAhead(deployment, holder, { to, amount, opening, purpose: line.payout })
    // It is awaited in its turn, unless a transfer before it fails.
    proof.catch(() => undefined)
    return proof
  }
  const beganAt = performance.now()
  const report = (paid: number) => {
    const left = lines.length - paid
    const paceMs = (performance.now() - beganAt) / paid
    const eta = paid > 0 ? { etaSeconds: Math.round((paceMs * left) / 1000) } : {}
    progress?.({ step: 'paying', done: payees.length - left, of: payees.length, ...eta })
  }
  report(0)
  let proof = prove(lines[0], spendable)
  for (const [index, { payout }] of lines.entries()) {
    signal?.throwIfAborted()
    const spending = await proof
    if (!spending) return
    signal?.throwIfAborted()
    const { signedXdr, next } = await signSpending(deployment, holder, spending, { source })
    proof = prove(lines[index + 1], next)
    await submit(request, payout, signedXdr)
    report(index + 1)
  }
}

/**
 * Sends a transfer until its outcome is known: the same transfer is the same request.
 * @throws RunError `not-on-ledger` if only the service says that it was applied; PayrollError
 */
async function submit(request: BatchRequest, payoutId: string, signedXDR: string): Promise<void> {
  const { client, deployment, signal, seenMs = SEEN_MS } = request
  const { hash } = await patiently(() => take(client.POST('/transfer', { body: { signedXDR, payoutId } })), { signal })
  if (await untilSeen(deployment.rpc, hash, seenMs)) return
  const claim = `the service says that transaction ${hash} has paid payout ${payoutId}`
  throw new RunError('not-on-ledger', `${claim}, and the ledger does not show it`)
}

/** Errors after which the state must be read again: the transfer paid nothing, or another one may have paid. */
const OVERTAKEN: ReadonlySet<string> = new Set([
  ...['transfer-refused', 'transfer-replaced', 'transfer-failed', 'transfer-expired', 'transfer-unknown'],
  ...['sequence', 'another-open', 'would-fail'],
])

function isOvertaken(error: Error): boolean {
  if (error instanceof WalletError) return error.code === 'balance-changed' || error.code === 'would-fail'
  if (error instanceof RunError) return error.code === 'not-on-ledger'
  if (!(error instanceof PayrollError)) return isTransient(error)
  return OVERTAKEN.has(error.code) || ['busy', 'already-paid'].includes(String(error.details.reason))
}

/** What is left in the escrows of an ended run could still pay the same payouts, so it is taken back. @throws RunError `not-started` */
async function requireNoRun(request: BatchRequest): Promise<void> {
  const { client, batch, signal } = request
  const params = { path: { id: batch } }
  const { run } = await patiently(() => take(client.GET('/batches/{id}/status', { params })), { signal })
  if (run?.status === 'running') {
    throw new RunError('not-started', 'the relay is paying the batch: wait until its run has ended')
  }
  await revokeOwn(request)
  await requireNoneOwn(request)
}

/** How long (ms) an earlier transfer may stay undecided: it is valid for at most 330 s. The pause between two readings. */
const DECIDED_MS = 400_000
const READ_MS = 1_000

/** Waits while transfers of an earlier call are pending. */
async function untilDecided({ signal, say }: BatchRequest, read: () => Promise<BatchState>): Promise<void> {
  const deadline = performance.now() + DECIDED_MS
  for (let isFirst = true; ; isFirst = false) {
    const pending = (await read()).payouts.filter(({ status }) => status === 'pending')
    // One with an error was paid or not, and a person must say which.
    const open = pending.filter(({ error }) => error === undefined)
    if (open.length === 0 || performance.now() > deadline) return
    if (isFirst) say(`Waiting for the outcome of payout ${open[0]?.id}`)
    await pause(READ_MS, signal)
  }
}
