import type { BatchRequest } from './batch-request.ts'
import { type BatchState, type Payee, readBatch } from './payees.ts'
import { take } from './payroll-client.ts'
import { RunError } from './run-error.ts'

/** A payee's amount as the service keeps it. */
export interface EncryptedAmount {
  payee: Payee
  encryptedAmount: string
}

/** Adds the payouts of a draft that are missing, and locks it. */
export async function makeReady(
  request: BatchRequest,
  encrypt: (missing: readonly Payee[]) => Promise<EncryptedAmount[]>,
): Promise<void> {
  const { client, batch, payees, say } = request
  const state = await readBatch(client, batch)
  requireSame(request, state)
  if (state.status !== 'draft') return
  const present = new Set(countedOf(request, state).map(({ contractorId }) => contractorId))
  const missing = payees.filter(({ contractor }) => !present.has(contractor))
  const params = { path: { id: batch } }
  if (missing.length > 0) {
    say(`Adding ${missing.length} payout${missing.length === 1 ? '' : 's'}`)
    for (const part of partsOf(await encrypt(missing))) {
      const instructions = part.map(({ payee, encryptedAmount }) => ({
        contractorId: payee.contractor,
        encryptedAmount,
      }))
      const { errors } = await take(client.POST('/batches/{id}/instructions', { params, body: { instructions } }))
      const [problem] = errors
      if (problem)
        throw new RunError('list-differs', `contractor ${problem.contractorId} cannot be paid: ${problem.reason}`)
    }
  }
  await take(client.POST('/batches/{id}/ready', { params }))
}

/** The payouts that count: those that are not canceled, and those that an earlier command found paid, and so canceled. */
export function countedOf({ notes }: Pick<BatchRequest, 'notes'>, { payouts }: BatchState): BatchState['payouts'] {
  const paid = notes.paid()
  return payouts.filter(({ id, status }) => status !== 'canceled' || paid.has(id))
}

/**
 * Requires that a batch has one payout for each line of the list. One that is canceled counts if it is noted as paid.
 * @throws RunError `list-differs` if a payout is not in the list or a payee has two, or, once the batch is locked, none
 */
export function requireSame(
  { payees, notes }: Pick<BatchRequest, 'payees' | 'notes'>,
  { status: batchStatus, payouts }: BatchState,
): void {
  const listed = new Map(payees.map((payee) => [payee.contractor, payee]))
  const present = new Set<string>()
  for (const { contractorId, address, status } of countedOf({ notes }, { status: batchStatus, payouts })) {
    const payee = listed.get(contractorId)
    if (!payee && status === 'paid') continue
    if (!payee) throw new RunError('list-differs', `the list of amounts lacks contractor ${contractorId}`)
    if (present.has(contractorId)) throw new RunError('list-differs', `contractor ${contractorId} has two payouts`)
    present.add(contractorId)
    if (status !== 'paid' && address !== payee.address) {
      throw new RunError('list-differs', `the payout of contractor ${contractorId} goes to another address: ${address}`)
    }
  }
  const unpaid = payees.find(({ contractor }) => !present.has(contractor))
  if (batchStatus !== 'draft' && unpaid) {
    throw new RunError('list-differs', `the batch has no payout of contractor ${unpaid.contractor}`)
  }
}

/** How many amounts one request holds: the service accepts 256 KiB. */
const AMOUNTS_PER_REQUEST = 250

/** A list in parts that a request can hold. */
export const partsOf = <Item>(items: readonly Item[]): Item[][] =>
  Array.from({ length: Math.ceil(items.length / AMOUNTS_PER_REQUEST) }, (_, part) =>
    items.slice(part * AMOUNTS_PER_REQUEST, (part + 1) * AMOUNTS_PER_REQUEST),
  )
