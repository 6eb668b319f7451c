import { ensureEscrow, readOwnDelegations } from '#lib/wallet/escrow.ts'
import { signManifest } from '#lib/wallet/manifest.ts'
import { signerOf } from '#lib/wallet/signer.ts'
import { countedOf, makeReady, requireSame } from './batch-ready.ts'
import { finish, owed, type PaidBatch } from './batch-result.ts'
import { findPaid, findPaidBefore, notePayouts, type PastPayments, requireNew } from './paid-payouts.ts'
import { patiently } from './patience.ts'
import { type BatchState, readBatch } from './payees.ts'
import { PayrollError, take } from './payroll-client.ts'
import { requireBalance } from './run-balance.ts'
import { requireOwnDelegation, revokeOwn } from './run-delegations.ts'
import { RunError } from './run-error.ts'
import { follow } from './run-follow.ts'
import { manifestOf } from './run-manifest.ts'
import type { Line, RunRequest } from './run-request.ts'
import { chooseChannels, recognize, sealAgain, sealMissing } from './run-seals.ts'
import { delegationLedgers } from './run-terms.ts'
import { sponsorCall } from './sponsored-call.ts'

/**
 * Seals, delegates, signs, starts a run and follows it. Each step first reads the state of the service, of the ledger and of the
 * employer's notes, so that a second call after an interruption continues without paying or delegating twice. What the ledger shows
 * as paid is not paid again, and only what it shows is called paid. An abort ends the call between two steps; another call continues.
 * @throws RunError; WalletError `balance-too-low`, `relay-unknown` or `history-incomplete` before anything is sealed or delegated;
 *   PayrollError
 */
export async function runBatch(request: RunRequest): Promise<PaidBatch> {
  const { client, batch, signal, progress } = request
  const of = request.payees.length
  const read = async () => {
    const state = await patiently(() => readBatch(client, batch), { signal })
    requireSame(request, state)
    return state
  }
  const end = (failure?: RunError) =>
    finish(request, before, failure, request.revokes ? () => revokeOwn(request) : undefined)
  progress?.({ step: 'looking', done: 0, of })
  const look = () => patiently(async () => findPaidBefore(request, countedOf(request, await read())), { signal })
  let before = await look()
  const present = await read()
  notePayouts(request, countedOf(request, present))
  if (present.status === 'draft')
    await patiently(() => requireBalance(request, owed(request, before, present)), { signal })
  progress?.({ step: 'sealing', done: 0, of })
  await patiently(() => makeReady(request, (missing) => sealMissing(request, missing)), { signal })
  for (let attempt = 1; ; attempt += 1) {
    const state = await read()
    // Also the payouts that have been added since: nothing is signed that was not checked and noted.
    requireNew(request, before, countedOf(request, state))
    notePayouts(request, countedOf(request, state))
    const unpaid = state.payouts.filter(({ status }) => status === 'ready' || status === 'failed')
    const known = unpaid.filter(({ id }) => before.paid.has(id))
    if (known.length === unpaid.length) {
      const isPaying = state.payouts.some(({ status }) => status === 'pending')
      return await end(isPaying ? await follow(request) : undefined)
    }
    if (known.length > 0) await cancelPaid(request, known)
    else if (await patiently(() => start(request, before, unpaid), { signal })) break
    else before = await look()
    if (attempt === STARTS) throw new RunError('not-started', 'the batch could not be started')
  }
  const failure = await follow(request)
  progress?.({ step: 'checking', done: of, of })
  return await end(failure)
}

/** How many times the terms may change while a run is being prepared. */
const STARTS = 3

/**
 * Cancels payouts that the ledger shows as paid: a run covers every payout that the service calls unpaid. While payments are stopped,
 * no channel is available, and the service may yet find them.
 */
async function cancelPaid(request: RunRequest, payouts: BatchState['payouts']): Promise<void> {
  const { client, say } = request
  await chooseChannels(request)
  for (const { id } of payouts) {
    say(`Payout ${id} is paid on the ledger, which the service does not know: it is canceled there`)
    await patiently(() => client.DELETE('/payouts/{id}', { params: { path: { id } } })).catch((error: unknown) => {
      // An earlier attempt has canceled it.
      if (!(error instanceof PayrollError && error.code === 'payout-sent')) throw error
    })
  }
}

/** Starts the run, after seals and delegations are in place. False if something has changed in the meantime. */
async function start(request: RunRequest, before: PastPayments, unpaid: BatchState['payouts']): Promise<boolean> {
  const { client, deployment, holder, batch, notes, say } = request
  const sealed = await recognize(request, unpaid)
  // While a run is unfinished, nothing may be sealed or delegated again: it needs both. The service says whether one is.
  if (sealed.length === unpaid.length && (await tryStart(request, sealed))) return true
  const lines = await sealAgain(request, unpaid)
  if (!lines) return false
  const parts = Map.groupBy(lines, (line) => line.channel)
  // A signature over lines of another channel may still be used there, as long as its escrow exists.
  await revokeOwn(request, new Set(parts.keys()))
  for (const [index, [channel, part]] of [...parts].entries()) {
    request.progress?.({ step: 'delegating', done: index, of: parts.size })
    request.signal?.throwIfAborted()
    const escrow = {
      spender: channel,
      amount: part.reduce((sum, { amount }) => sum + amount, 0n),
      ...(await delegationLedgers(request, part.length)),
    }
    await ensureEscrow(deployment, holder, escrow, {
      submit: (signedXdr) => sponsorCall(client, signedXdr, deployment.rpc),
      say,
      use: (liveUntilLedger) => requireOwnDelegation(request, { channel, liveUntilLedger }),
      note: (liveUntilLedger) => notes.addDelegation({ batch, channel, liveUntilLedger }),
      named: notes.delegations().flatMap((one) => (one.channel === channel ? [one.liveUntilLedger] : [])),
    })
  }
  // A transfer of this account that was on its way may have paid one of them. A delegation that was made since has overtaken it.
  if ((await findPaid(request, unpaid, before)).size > before.paid.size) return false
  say(`Starting the run of batch ${batch}`)
  return await tryStart(request, lines)
}

/** Posts the signed manifest. False if the service finds that something is not in place. */
async function tryStart(request: RunRequest, lines: readonly Line[]): Promise<boolean> {
  const { client, deployment, holder, batch, say } = request
  const manifest = await manifestOf(request, lines)
  if (!manifest) return false
  request.signal?.throwIfAborted()
  const escrows = await readOwnDelegations(
    deployment,
    holder,
    manifest.delegations.map(({ channel }) => channel),
  )
  const isShort = escrows.delegations.some(({ spender, left = 0n }) => {
    const needed = lines.filter(({ channel }) => channel === spender).reduce((sum, { amount }) => sum + amount, 0n)
    return left < needed
  })
  // A run in progress may have spent part of the escrow. If there is none, this run would fail, so an empty manifest
  // only asks.
  const signed = isShort ? { ...manifest, payouts: [] } : manifest
  const signature = await signManifest(signerOf(holder.signer), signed)
  try {
    const { approval } = await patiently(() =>
      take(client.POST('/batches/{id}/run', { params: { path: { id: batch } }, body: { signature } })),
    )
    if (!approval) return true
    const progress = `signed with weight ${approval.weight} of ${approval.needed}`
    throw new RunError('approval-needed', `${progress}: have the other signers approve it, then repeat this`)
  } catch (error) {
    if (!(error instanceof PayrollError) || error.code !== 'run-not-ready') throw error
    if (!isShort) say(`Not ready yet: ${JSON.stringify(error.details.errors ?? error.message)}`)
    return false
  }
}
