import { and, eq, inArray, isNull, or } from 'drizzle-orm'
import { contractors } from '#drizzle/schema/directory.ts'
import type { RecordedOutcome } from '#drizzle/schema/idempotency.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { transactOnce } from '#lib/db/idempotency.ts'
import { ROWS_AT_ONCE } from '#lib/db/parts.ts'
import { takeTurn } from '#lib/http/fairness.ts'
import { codeOf, describeIssue } from '#lib/http/parsing.ts'
import { messageOf, type RefusalCode } from '#lib/refusal/refusal.ts'
import type { EmployerContext } from '../context.ts'
import { refuseDissolved } from '../organisations.ts'
import type { Employer } from '../users.ts'
import { contractorRowOf, creationEntries, remainingCapacity, TAKEN } from './creation.ts'
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
 * Creates a contractor for each valid row, in one transaction. Returns the ids of contractors that have the external id of a row
 * already, and the other rows as errors. Of two rows with the same email, address or external id, the first is imported.
 * @throws Refusal `organisation-dissolved`
 */
export async function importContractors(context: EmployerContext, rows: readonly unknown[]): Promise<Import> {
  const { accounts, employer, now } = context
  const parsed = await mapInTurns(rows, (row, index) => parseRow(row, index + 1))
  const valid = parsed.flatMap((entry) => (entry.input ? [entry] : []))
  const viewingKeys = await findViewingKeys(
    accounts,
    valid.map(({ input }) => input.address),
  )
  const errors = parsed.flatMap(({ row, problem }) => (problem === undefined ? [] : [{ row, ...problem }]))
  const work = async (tx: Database) => {
    const drafts = await mapInTurns(valid, ({ input }) => contractorRowOf(employer, input, viewingKeys, now))
    const inserted = await insertUpTo(tx, drafts, await remainingCapacity(tx, employer))
    const { existing, problems } = await explainSkipped(tx, employer, drafts, inserted)
    const rejected = valid.flatMap(({ row }, index) => {
      const problem = problems.get(drafts[index]?.id ?? '')
      return problem === undefined ? [] : [{ row, ...problem }]
    })
    const imported = drafts.flatMap(({ id }) => inserted.get(id) ?? [])
    await recordAudit(tx, now, ...imported.flatMap((contractor) => creationEntries(employer, contractor)))
    return {
      imported: imported.map(presentContractor),
      ...(valid.some(({ input }) => input.externalId !== undefined) && { existing }),
      errors: [...errors, ...rejected].sort((one, other) => one.row - other.row),
    }
  }
  const importing = transactOnce(context, employer.organisation, { work, refer: referToImport })
  return await importing.catch(refuseDissolved)
}

const referToImport = ({ imported, existing, errors }: Import): RecordedOutcome => ({
  ids: imported.map(({ id }) => id),
  ...(existing && { existing }),
  errors: errors.map(({ row, code }) => ({ row, code })),
})

/** Why the row of a request was not imported, by the code that was recorded. */
export function explainRow(row: number, value: unknown, code: string): Import['errors'][number] {
  const { problem } = parseRow(value, row)
  const reason = problem?.code === code ? problem.reason : TAKEN[code as keyof typeof TAKEN]
  return { row, code, reason: reason ?? messageOf(code as RefusalCode) }
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

/**
 * Why rows were not inserted: contractors that have their external ids already, and otherwise a problem by the id of the draft. An
 * earlier row or another contractor has the external id, the email or the address, or the organisation is full.
 */
async function explainSkipped(
  tx: Database,
  { organisation }: Employer,
  drafts: readonly Draft[],
  inserted: ReadonlyMap<string, ContractorRow>,
): Promise<{ existing: string[]; problems: Map<string, RowProblem> }> {
  const problems = new Map<string, RowProblem>()
  const skipped = drafts.filter(({ id }) => !inserted.has(id))
  if (skipped.length === 0) return { existing: [], problems }
  const { id, externalId, emailFolded, address } = contractors
  const isSame = or(
    inArray(
      externalId,
      skipped.flatMap((draft) => draft.externalId ?? []),
    ),
    inArray(
      emailFolded,
      skipped.flatMap((draft) => draft.emailFolded ?? []),
    ),
    inArray(
      address,
      skipped.flatMap((draft) => draft.address ?? []),
    ),
  )
  const isOwn = and(eq(contractors.organisation, organisation), isNull(contractors.deletedAt))
  const columns = { id, externalId, emailFolded, address }
  const rivals = (await tx.select(columns).from(contractors).where(and(isOwn, isSame))).filter(
    (rival) => !inserted.has(rival.id),
  )
  const known = new Map(rivals.map((rival) => [rival.externalId, rival.id]))
  const seen = new Set<string>()
  const conflicts = new Set(rivals.flatMap((rival) => [rival.emailFolded, rival.address]))
  const existing: string[] = []
  const isTaken = (value: string | undefined) => value !== undefined && conflicts.has(value)
  const codeOfSkipped = (draft: Draft): keyof typeof TAKEN => {
    if (draft.externalId !== undefined && seen.has(draft.externalId)) return 'external-id-taken'
    if (isTaken(draft.emailFolded)) return 'email-taken'
    return isTaken(draft.address) ? 'address-taken' : 'contractors-full'
  }
  for (const draft of drafts) {
    const own = draft.externalId === undefined || seen.has(draft.externalId) ? undefined : known.get(draft.externalId)
    const isInserted = inserted.has(draft.id)
    if (isInserted) conflicts.add(draft.emailFolded ?? null).add(draft.address ?? null)
    else if (own !== undefined) existing.push(own)
    else {
      const code = codeOfSkipped(draft)
      problems.set(draft.id, { code, reason: TAKEN[code] })
    }
    if (draft.externalId !== undefined && (isInserted || own !== undefined)) seen.add(draft.externalId)
  }
  return { existing, problems }
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
