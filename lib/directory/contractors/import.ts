import { setImmediate } from 'node:timers/promises'
import { and, eq, inArray, isNull, or } from 'drizzle-orm'
import { contractors } from '#drizzle/schema/directory.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transactFor } from '#lib/db/connection.ts'
import { ROWS_AT_ONCE } from '#lib/db/parts.ts'
import { refuseDissolved } from '../organisations.ts'
import type { Employer, EmployerContext } from '../user.ts'
import { contractorRowOf, creationOf, FULL, roomFor, SAME_ADDRESS, SAME_EMAIL } from './creation.ts'
import { findViewingKeys, type LedgerContext } from './registration.ts'
import {
  CONTRACTOR_COLUMNS,
  type ContractorRow,
  contractorRow,
  type Import,
  type NewContractor,
  presentContractor,
} from './schema.ts'

/**
 * Makes a contractor of every row that can be one, in one transaction; the others come back as errors. Of two rows
 * with one email or address the first counts.
 * @throws Refusal `organisation-dissolved` when the organisation has just been dissolved
 */
export async function importContractors(
  { db, accounts, employer, now }: EmployerContext & LedgerContext,
  rows: readonly unknown[],
): Promise<Import> {
  const parsed = await mapInSlices(rows, (row, index) => parseRow(row, index + 1))
  const good = parsed.flatMap((entry) => (entry.given ? [entry] : []))
  const found = await findViewingKeys(
    accounts,
    good.map(({ given }) => given.address),
  )
  const errors = parsed.flatMap(({ row, reason }) => (reason === undefined ? [] : [{ row, reason }]))
  const importing = transactFor(db, employer.organisation, async (tx) => {
    const drafts = await mapInSlices(good, ({ given }) => contractorRowOf(employer, given, found, now))
    const made = await insertUpTo(tx, drafts, await roomFor(tx, employer))
    const reasons = await findReasons(tx, employer, drafts, made)
    const refused = good.flatMap(({ row }, index) => {
      const reason = reasons.get(drafts[index]?.id ?? '')
      return reason === undefined ? [] : [{ row, reason }]
    })
    const imported = drafts.flatMap(({ id }) => made.get(id) ?? [])
    await recordAudit(tx, now, ...imported.map((contractor) => creationOf(employer, contractor)))
    return {
      imported: imported.map(presentContractor),
      errors: [...errors, ...refused].sort((one, other) => one.row - other.row),
    }
  })
  return await importing.catch(refuseDissolved)
}

interface GoodRow {
  row: number
  given: NewContractor
  reason?: undefined
}

function parseRow(value: unknown, row: number): GoodRow | { row: number; given?: undefined; reason: string } {
  const parsed = contractorRow.safeParse(value)
  if (!parsed.success) return { row, reason: parsed.error.issues[0]?.message ?? 'invalid' }
  const { amount, ...given } = parsed.data
  return { row, given: { ...given, ...(amount !== undefined && { rate: { amount, currency: 'USDC' } }) } }
}

type Draft = ReturnType<typeof contractorRowOf>

/** Inserts rows until `room` is used up, and leaves out those that clash. Resolves to the inserted rows by id. */
async function insertUpTo(tx: Database, drafts: readonly Draft[], room: number): Promise<Map<string, ContractorRow>> {
  const made = new Map<string, ContractorRow>()
  for (let next = 0; next < drafts.length && made.size < room; ) {
    const part = drafts.slice(next, next + Math.min(ROWS_AT_ONCE, room - made.size))
    const rows = await tx.insert(contractors).values(part).onConflictDoNothing().returning(CONTRACTOR_COLUMNS)
    for (const row of rows) made.set(row.id, row)
    next += part.length
  }
  return made
}

/**
 * Why rows were not inserted, by id: another contractor or an earlier row has the email or address, or no room is left.
 */
async function findReasons(
  tx: Database,
  { organisation }: Employer,
  drafts: readonly Draft[],
  made: ReadonlyMap<string, ContractorRow>,
): Promise<Map<string, string>> {
  const reasons = new Map<string, string>()
  const left = drafts.filter(({ id }) => !made.has(id))
  if (left.length === 0) return reasons
  const { id, emailFolded, address } = contractors
  const theirEmails = left.flatMap((draft) => draft.emailFolded ?? [])
  const theirAddresses = left.flatMap((draft) => draft.address ?? [])
  const isSame = or(inArray(emailFolded, theirEmails), inArray(address, theirAddresses))
  const isOwn = and(eq(contractors.organisation, organisation), isNull(contractors.deletedAt))
  const found = await tx.select({ id, emailFolded, address }).from(contractors).where(and(isOwn, isSame))
  const taken = new Set(found.flatMap((one) => (made.has(one.id) ? [] : [one.emailFolded, one.address])))
  for (const draft of drafts) {
    const isTaken = (value: string | undefined) => value !== undefined && taken.has(value)
    if (made.has(draft.id)) taken.add(draft.emailFolded ?? null).add(draft.address ?? null)
    else if (isTaken(draft.emailFolded)) reasons.set(draft.id, SAME_EMAIL)
    else reasons.set(draft.id, isTaken(draft.address) ? SAME_ADDRESS : FULL)
  }
  return reasons
}

/** How long a conversion may hold the process before other requests have their turn (ms). */
const SLICE_MS = 10

/** `items.map(convert)`, in slices, so that a long list does not keep other requests waiting. */
export async function mapInSlices<Item, Result>(
  items: readonly Item[],
  convert: (item: Item, index: number) => Result,
): Promise<Result[]> {
  const results: Result[] = []
  let began = performance.now()
  for (const [index, item] of items.entries()) {
    results.push(convert(item, index))
    if (performance.now() - began < SLICE_MS) continue
    await setImmediate()
    began = performance.now()
  }
  return results
}
