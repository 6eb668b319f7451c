import { and, eq, inArray, isNull, or } from 'drizzle-orm'
import { contractors } from '#drizzle/schema/directory.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transactFor } from '#lib/db/connection.ts'
import { ROWS_AT_ONCE } from '#lib/db/parts.ts'
import { takeTurn } from '#lib/http/fairness.ts'
import { codeOf, describeIssue } from '#lib/http/parsing.ts'
import type { EmployerContext } from '../context.ts'
import { refuseDissolved } from '../organisations.ts'
import type { Employer } from '../users.ts'
import { contractorRowOf, creationEntry, FULL, remainingCapacity, SAME_ADDRESS, SAME_EMAIL } from './creation.ts'
import { findViewingKeys } from './registration.ts'
import {
  CONTRACTOR_COLUMNS,
  type ContractorRow,
  contractorRow,
  type Import,
  type NewContractor,
  presentContractor,
} from './schema.ts'

/**
 * Creates a contractor for each valid row, in one transaction, and returns the other rows as errors. Of two rows with
 * the same email or address, the first is imported.
 * @throws Refusal `organisation-dissolved`
 */
export async function importContractors(
  { db, accounts, employer, now }: EmployerContext,
  rows: readonly unknown[],
): Promise<Import> {
  const parsed = await mapInTurns(rows, (row, index) => parseRow(row, index + 1))
  const valid = parsed.flatMap((entry) => (entry.input ? [entry] : []))
  const viewingKeys = await findViewingKeys(
    accounts,
    valid.map(({ input }) => input.address),
  )
  const errors = parsed.flatMap(({ row, problem }) => (problem === undefined ? [] : [{ row, ...problem }]))
  const importing = transactFor(db, employer.organisation, async (tx) => {
    const drafts = await mapInTurns(valid, ({ input }) => contractorRowOf(employer, input, viewingKeys, now))
    const inserted = await insertUpTo(tx, drafts, await remainingCapacity(tx, employer))
    const problems = await findProblems(tx, employer, drafts, inserted)
    const rejected = valid.flatMap(({ row }, index) => {
      const problem = problems.get(drafts[index]?.id ?? '')
      return problem === undefined ? [] : [{ row, ...problem }]
    })
    const imported = drafts.flatMap(({ id }) => inserted.get(id) ?? [])
    await recordAudit(tx, now, ...imported.map((contractor) => creationEntry(employer, contractor)))
    return {
      imported: imported.map(presentContractor),
      errors: [...errors, ...rejected].sort((one, other) => one.row - other.row),
    }
  })
  return await importing.catch(refuseDissolved)
}

interface ValidRow {
  row: number
  input: NewContractor
  problem?: undefined
}

/** Why a row was not imported: the code that a single contractor would be refused with, and a text. */
type RowProblem = Omit<Import['errors'][number], 'row'>

function parseRow(value: unknown, row: number): ValidRow | { row: number; input?: undefined; problem: RowProblem } {
  const parsed = contractorRow.safeParse(value, { reportInput: true })
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    if (!issue) throw parsed.error
    return { row, problem: { code: codeOf(issue), reason: describeIssue(issue) } }
  }
  const { amount, ...fields } = parsed.data
  return { row, input: { ...fields, ...(amount !== undefined && { rate: { amount, currency: 'USDC' } }) } }
}

type Draft = ReturnType<typeof contractorRowOf>

/** Inserts at most `capacity` rows, and skips rows that violate a constraint. Resolves to the inserted rows by id. */
async function insertUpTo(
  tx: Database,
  drafts: readonly Draft[],
  capacity: number,
): Promise<Map<string, ContractorRow>> {
  const inserted = new Map<string, ContractorRow>()
  for (let next = 0; next < drafts.length && inserted.size < capacity; ) {
    const part = drafts.slice(next, next + Math.min(ROWS_AT_ONCE, capacity - inserted.size))
    const rows = await tx.insert(contractors).values(part).onConflictDoNothing().returning(CONTRACTOR_COLUMNS)
    for (const row of rows) inserted.set(row.id, row)
    next += part.length
  }
  return inserted
}

/** Why rows were not inserted, by id: another contractor or an earlier row has the email or address, or the limit. */
async function findProblems(
  tx: Database,
  { organisation }: Employer,
  drafts: readonly Draft[],
  inserted: ReadonlyMap<string, ContractorRow>,
): Promise<Map<string, RowProblem>> {
  const problems = new Map<string, RowProblem>()
  const skipped = drafts.filter(({ id }) => !inserted.has(id))
  if (skipped.length === 0) return problems
  const { id, emailFolded, address } = contractors
  const emails = skipped.flatMap((draft) => draft.emailFolded ?? [])
  const addresses = skipped.flatMap((draft) => draft.address ?? [])
  const isSame = or(inArray(emailFolded, emails), inArray(address, addresses))
  const isOwn = and(eq(contractors.organisation, organisation), isNull(contractors.deletedAt))
  const rivals = await tx.select({ id, emailFolded, address }).from(contractors).where(and(isOwn, isSame))
  const conflicts = new Set(
    rivals.flatMap((rival) => (inserted.has(rival.id) ? [] : [rival.emailFolded, rival.address])),
  )
  for (const draft of drafts) {
    const isTaken = (value: string | undefined) => value !== undefined && conflicts.has(value)
    if (inserted.has(draft.id)) conflicts.add(draft.emailFolded ?? null).add(draft.address ?? null)
    else if (isTaken(draft.emailFolded)) problems.set(draft.id, { code: 'email-taken', reason: SAME_EMAIL })
    else if (isTaken(draft.address)) problems.set(draft.id, { code: 'address-taken', reason: SAME_ADDRESS })
    else problems.set(draft.id, { code: 'contractors-full', reason: FULL })
  }
  return problems
}

/** The number of rows that can be converted in a few milliseconds. */
const ROWS_PER_TURN = 100

/** `items.map(convert)` in turns of the event loop, so that a long list does not block other requests. */
export async function mapInTurns<Item, Result>(
  items: readonly Item[],
  convert: (item: Item, index: number) => Result,
): Promise<Result[]> {
  const results: Result[] = []
  for (const [index, item] of items.entries()) {
    if (index > 0 && index % ROWS_PER_TURN === 0) await takeTurn('rows')
    results.push(convert(item, index))
  }
  return results
}
