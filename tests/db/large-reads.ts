import type { Step } from '../support/plans.ts'

/** A list counts up to 10,000 of its records, past some that do not match. Each action is a third of the audit log. */
const mostRowsOf = (table: string) => (table === 'audit_log' ? 31_000 : 10_500)

/** The largest organisation has a sixth of the payouts. A statement may walk it twice, but no whole table. */
const MAX_OF_ORGANISATION = 40_000

/**
 * The beginnings, or other parts, of the statements that read all of the largest batch, run or organisation, which has at
 * most 50,000 records. The list may only become shorter.
 */
const OF_ONE_ORGANISATION = [
  // the search for a part of a name
  '"contractors"."name"::text ilike',
  // the lines of runs
  'select distinct "relay_lines"."spender"',
  'select "job", count(*)',
  'select count(*), count(*) filter (where "relay_lines"."outcome"',
  'select "spender", count(*) filter',
  // the transfers of an organisation, a batch or an account
  'select (select count(*) from (select 1 from "transfers"',
  'select "id" from (select "id", "fee_charged"',
  'select "transfers"."id", (select "envelopes"."inner_hash"',
  // when an organisation last paid
  'select "organisation", max("last_paid_at")',
]

/** Whether a step reads a table without an index, or more of it than any request needs. */
export function isExcessive({ table, index, rows, statement }: Step): boolean {
  const isOfOrganisation = OF_ONE_ORGANISATION.some((part) => statement.includes(part))
  return index === undefined || rows > (isOfOrganisation ? MAX_OF_ORGANISATION : mostRowsOf(table))
}
