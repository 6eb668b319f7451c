import { type components, type PayrollClient, pages, take } from './payroll-client.ts'
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
  /** the payee's address: from the list if it has one, otherwise from the API */
  address: string
}

export async function readBatch(client: PayrollClient, id: string): Promise<BatchState> {
  const { status } = await take(client.GET('/batches/{id}', { params: { path: { id } } }))
  const payouts: Payout[] = []
  for await (const page of pages((query) => client.GET('/batches/{id}', { params: { path: { id }, query } }))) {
    payouts.push(...page.payouts)
  }
  return { status, payouts }
}

/**
 * Finds the contractor of each row, by id, email or address.
 * @throws RunError `list-differs` for a contractor that is missing or listed twice, and for an address that differs
 *   from the API's
 */
export async function matchPayees(client: PayrollClient, rows: readonly AmountRow[]): Promise<Payee[]> {
  const contractors: Contractor[] = []
  for await (const page of pages((query) => client.GET('/contractors', { params: { query } }))) {
    contractors.push(...page.contractors)
  }
  const payees = rows.map((row) => matchPayee(row, contractors))
  const twice = payees.find(
    ({ contractor }, index) => payees.findIndex((one) => one.contractor === contractor) !== index,
  )
  if (twice) throw new RunError('list-differs', `the list of amounts has contractor ${twice.contractor} twice`)
  return payees
}

function matchPayee({ contractor: named, amount, address }: AmountRow, contractors: readonly Contractor[]): Payee {
  const found = contractors.find(
    (one) => one.id === named || one.email?.toLowerCase() === named.toLowerCase() || one.address === named,
  )
  if (!found) throw new RunError('list-differs', `there is no contractor ${named}`)
  if (found.address === undefined) throw new RunError('list-differs', `contractor ${named} has no address yet`)
  const expected = address ?? (found.address === named ? named : undefined)
  if (expected !== undefined && expected !== found.address) {
    throw new RunError(
      'list-differs',
      `the API has another address of contractor ${named} than the list: ${found.address}`,
    )
  }
  return { contractor: found.id, amount, address: found.address }
}
