import { StrKey } from '@stellar/stellar-sdk'
import type { OwnNotes } from './own-notes.ts'
import { type components, type PayrollClient, pages } from './payroll-client.ts'
import { RunError } from './run-error.ts'

type Contractor = components['schemas']['Contractor']
type Payout = components['schemas']['Payout']

/** A batch as the service returns it. */
export interface BatchState {
  status: components['schemas']['Batch']['status']
  payouts: Payout[]
}

/** A line of the employer's list. */
export interface AmountRow {
  /** an id, an email or an address of a contractor */
  contractor: string
  /** base units */
  amount: bigint
  /** the payee's address as the employer knows it; undefined if the list has none */
  address?: string | undefined
}

/** The entry of the employer's list for one contractor. */
export interface Payee {
  contractor: string
  /** base units */
  amount: bigint
  /** the payee's address: from the list or from the employer's notes, never from the API alone */
  address: string
}

/** A payee that the list names by id or email, and whose address the employer has not confirmed yet. */
export interface NewPayee {
  /** as the list has it */
  named: string
  /** name and address as the API has them */
  name: string
  address: string
}

export async function readBatch(client: PayrollClient, id: string): Promise<BatchState> {
  const payouts: Payout[] = []
  let status: BatchState['status'] = 'draft'
  for await (const page of pages((query) => client.GET('/batches/{id}', { params: { path: { id }, query } }))) {
    status = page.status
    payouts.push(...page.payouts)
  }
  const odd = payouts.find(({ id, contractorId }) => !isId(id) || !isId(contractorId))
  if (odd) throw new RunError('list-differs', `payout ${JSON.stringify(odd.id)} or its contractor has no id`)
  return { status, payouts }
}

/**
 * Finds the contractor of each row. A row that names an address pays that address. One that names an id or an email pays the
 * address in the row, or else the one in the employer's notes: the database behind the API could name any.
 * @param trust is shown the payees that neither has; they are added to the notes if it resolves to true
 * @throws RunError `list-differs` for a contractor that is missing, ambiguous or listed twice, and for an address that differs
 *   from the API's; `payee-unverified` for payees that are not trusted
 */
export async function matchPayees(
  client: PayrollClient,
  rows: readonly AmountRow[],
  notes: Pick<OwnNotes, 'addressOf' | 'addPayee'>,
  trust: (payees: readonly NewPayee[]) => boolean | Promise<boolean> = () => false,
): Promise<Payee[]> {
  const contractors: Contractor[] = []
  for await (const page of pages((query) => client.GET('/contractors', { params: { query } }))) {
    contractors.push(...page.contractors)
  }
  const found = rows.map((row) => ({ row, ...findContractor(row, contractors) }))
  const unverified = new Map<string, NewPayee>()
  for (const { row, name, address } of found) {
    const { contractor: named } = row
    const known = row.address ?? (isAddress(named) ? named : notes.addressOf(named))
    // The list has confirmed another address than the notes.
    if (row.address === address && !isAddress(named) && notes.addressOf(named) !== undefined)
      notes.addPayee(named, address)
    if (known === undefined) unverified.set(named, { named, name, address })
    else if (known !== address) {
      const problem = `the API has another address for contractor ${named}, ${address}, than you have: ${known}`
      throw new RunError('list-differs', problem)
    }
  }
  const fresh = [...unverified.values()]
  if (fresh.length > 0 && !(await trust(fresh))) {
    // The address first: the name is the service's word.
    const lines = fresh.map(({ named, name, address }) => `${address} for ${named}, called ${JSON.stringify(name)}`)
    const advice = 'check these addresses with the payees, then trust them or add them to the list'
    throw new RunError(
      'payee-unverified',
      `only the API has the addresses of ${fresh.length} payees: ${advice}\n${lines.join('\n')}`,
    )
  }
  for (const { named, address } of fresh) notes.addPayee(named, address)
  const payees = found.map(({ row, id: contractor, address }) => ({ contractor, amount: row.amount, address }))
  requireOnce(payees)
  return payees
}

function requireOnce(payees: readonly Payee[]): void {
  const seen = new Set<string>()
  for (const { contractor, address } of payees) {
    const twice = [contractor, address].find((each) => seen.has(each))
    if (twice) throw new RunError('list-differs', `the list of amounts has contractor ${twice} twice`)
    seen.add(contractor).add(address)
  }
}

const isId = (id: string): boolean => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(id)

const isAddress = (named: string): boolean => StrKey.isValidEd25519PublicKey(named) || StrKey.isValidContract(named)

function findContractor(
  { contractor: named }: AmountRow,
  contractors: readonly Contractor[],
): { id: string; name: string; address: string } {
  const [found, other] = contractors.filter(({ id, email, address }) =>
    isAddress(named) ? address === named : id === named || email?.toLowerCase() === named.toLowerCase(),
  )
  if (!found) throw new RunError('list-differs', `there is no contractor ${named}`)
  if (other) throw new RunError('list-differs', `there are two contractors ${named}`)
  if (found.address === undefined) throw new RunError('list-differs', `contractor ${named} has no address yet`)
  return { id: found.id, name: found.name, address: found.address }
}
