import { formatUnits } from '#lib/text/money.ts'
import type { BatchRequest } from './batch-request.ts'
import { findPaid, type PastPayments } from './paid-payouts.ts'
import { patiently, pause } from './patience.ts'
import { type BatchState, readBatch } from './payees.ts'
import { RunError } from './run-error.ts'

/** How a batch was paid: how many payouts of the batch the ledger shows as paid, of how many that are not canceled. */
export interface PaidBatch {
  paid: number
  payouts: number
}

/** The payees of the list whose payout neither the service nor the ledger shows as paid. */
export function owed({ payees }: BatchRequest, before: PastPayments, { payouts }: BatchState): BatchRequest['payees'] {
  const isPaid = ({ id, status }: BatchState['payouts'][number]) => status === 'paid' || before.paid.has(id)
  const paid = new Set(payouts.filter(isPaid).map(({ contractorId }) => contractorId))
  return payees.filter(({ contractor }) => !paid.has(contractor))
}

/** How long (ms) the ledger's events may take to show what the service has seen, and the pause between two readings. */
export const SEEN_MS = 60_000
const READ_MS = 2_000

/**
 * Reports the payments that the ledger shows: of each line of the list.
 * @param failure why a run ended before everything was paid
 * @param revoke returns the rest of the escrow
 * @throws RunError if not everything is paid
 */
export async function finish(
  request: BatchRequest,
  before: PastPayments,
  failure?: RunError,
  revoke?: () => Promise<bigint>,
): Promise<PaidBatch> {
  const { client, batch, payees, say, signal } = request
  const { payouts } = await patiently(() => readBatch(client, batch), { signal })
  for (const { id, status, error } of payouts) if (status === 'failed') say(`Payout ${id} failed: ${error}`)
  const seen = seePaid(request, payouts, before)
  // The escrow is taken back even if the ledger cannot be read.
  await seen.catch(() => undefined)
  const returned = revoke ? revoke() : Promise.resolve(undefined)
  await returned.catch(() => undefined)
  const paid = await seen
  const paidContractors = new Set(payouts.flatMap(({ id, contractorId }) => (paid.has(id) ? [contractorId] : [])))
  const result = {
    paid: payees.filter(({ contractor }) => paidContractors.has(contractor)).length,
    payouts: payees.length,
  }
  const ofAll = `${result.paid} of ${result.payouts} payouts are paid`
  const amount = await returned.catch((error: unknown) => {
    say(`${ofAll}. The rest of the escrow was not returned:`)
    throw error
  })
  if (amount !== undefined) say(`Revoked: ${formatUnits(amount)} returned`)
  if (result.paid === result.payouts) return result
  const unseen = payouts.filter(({ id, status }) => status === 'paid' && !paid.has(id))
  if (unseen.length > 0) {
    const lines = unseen.map(({ id, txHash }) => `payout ${id}, transaction ${txHash ?? 'unnamed'}`)
    const claim = `the service says that ${unseen.length} payouts are paid, and the ledger does not show it`
    throw new RunError('not-on-ledger', `${claim}:\n${lines.join('\n')}`)
  }
  const failed = payouts.filter(({ status }) => status === 'failed').length
  if (failed > 0) {
    const problem = `${failed} of ${result.payouts} payouts failed: try again to pay them`
    throw new RunError('payouts-failed', problem, failure?.reason)
  }
  if (failure) throw new RunError(failure.code, `${failure.message}; ${ofAll}`, failure.reason)
  const undecided = payouts.filter(({ status, error }) => status === 'pending' && error !== undefined)
  if (undecided.length > 0) {
    const advice = 'ask the payees whether they were paid, and cancel these payouts'
    throw new RunError('not-started', `${ofAll}; of ${undecided.length} the outcome is unknown: ${advice}`)
  }
  throw new RunError('not-started', `${ofAll}, and the others are not being paid: try again`)
}

/** Reads the ledger until it shows the payouts that the service calls paid, for as long as its nodes may lag. */
async function seePaid(request: BatchRequest, payouts: BatchState['payouts'], before: PastPayments) {
  const deadline = Date.now() + (request.seenMs ?? SEEN_MS)
  const said = new Set<string>()
  const say = (line: string) => {
    if (!said.has(line)) request.say(line)
    said.add(line)
  }
  for (;;) {
    const paid = await patiently(() => findPaid({ ...request, say }, payouts, before), { signal: request.signal })
    const isSeen = payouts.every(({ id, status }) => status !== 'paid' || paid.has(id))
    if (isSeen || Date.now() > deadline) return paid
    await pause(READ_MS, request.signal)
  }
}
