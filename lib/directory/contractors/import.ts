import { setImmediate } from 'node:timers/promises'
import { and, eq, inArray, isNull } from 'drizzle-orm'
import { contractors } from '#drizzle/schema/directory.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transactFor } from '#lib/db/connection.ts'
import { partsOf } from '#lib/db/parts.ts'
import { foldEmail } from '#lib/text/plain-text.ts'
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
    const room = await roomFor(tx, employer)
    const { fresh, taken } = await sortOut(tx, employer, good)
    const drafts = await mapInSlices(fresh.slice(0, room), ({ row, given }) => {
      return { row, record: contractorRowOf(employer, given, found, now) }
    })
    const left = fresh.slice(room).map(({ row }) => ({ row, reason: FULL }))
    const inserted = await insertContractors(
      tx,
      drafts.map(({ record }) => record),
    )
    const imported = drafts.flatMap(({ record }) => inserted.get(record.id) ?? [])
    const overtaken = drafts
      .filter(({ record }) => !inserted.has(record.id))
      .map(({ row }) => ({ row, reason: 'another contractor has this email or address' }))
    await recordAudit(tx, now, ...imported.map((contractor) => creationOf(employer, contractor)))
    return {
      imported: imported.map(presentContractor),
      errors: [...errors, ...taken, ...left, ...overtaken].sort((one, other) => one.row - other.row),
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

/**
 * Divides rows into those whose email and address are free, in the organisation and in the rows before, and the others
 * with the reason.
 */
async function sortOut(tx: Database, employer: Employer, rows: readonly GoodRow[]) {
  const wantedEmails = rows.flatMap(({ given }) => (given.email === undefined ? [] : foldEmail(given.email)))
  const wantedAddresses = rows.flatMap(({ given }) => given.address ?? [])
  const emails = await findTaken(tx, employer, contractors.emailFolded, wantedEmails)
  const addresses = await findTaken(tx, employer, contractors.address, wantedAddresses)
  const taken: { row: number; reason: string }[] = []
  const fresh = rows.filter(({ row, given }) => {
    const email = given.email === undefined ? undefined : foldEmail(given.email)
    const sameEmail = email !== undefined && emails.has(email)
    if (sameEmail || (given.address !== undefined && addresses.has(given.address))) {
      taken.push({ row, reason: sameEmail ? SAME_EMAIL : SAME_ADDRESS })
      return false
    }
    if (email !== undefined) emails.add(email)
    if (given.address !== undefined) addresses.add(given.address)
    return true
  })
  return { fresh, taken }
}

/** Which of `wanted` contractors of the organisation have already. */
async function findTaken(
  tx: Database,
  { organisation }: Employer,
  column: typeof contractors.emailFolded | typeof contractors.address,
  wanted: string[],
): Promise<Set<string>> {
  const found = await tx
    .select({ value: column })
    .from(contractors)
    .where(and(eq(contractors.organisation, organisation), isNull(contractors.deletedAt), inArray(column, wanted)))
  return new Set(found.flatMap(({ value }) => value ?? []))
}

/** Those that were inserted, by id. A clash with an import that runs at the same time leaves a row out. */
async function insertContractors(tx: Database, rows: readonly ReturnType<typeof contractorRowOf>[]) {
  const inserted = new Map<string, ContractorRow>()
  for (const part of partsOf(rows)) {
    const made = await tx.insert(contractors).values(part).onConflictDoNothing().returning(CONTRACTOR_COLUMNS)
    for (const row of made) inserted.set(row.id, row)
  }
  return inserted
}

/** How long the process may be held before others have their turn, in milliseconds. */
const SLICE_MS = 10

/** `items.map(convert)`, in slices, so that a long list does not keep everybody else waiting. */
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
