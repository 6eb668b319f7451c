import { and, eq, inArray, isNull } from 'drizzle-orm'
import { contractors } from '#drizzle/schema/directory.ts'
import type { RecordedOutcome } from '#drizzle/schema/idempotency.ts'
import { readRows } from '#lib/db/rows.ts'
import type { EmployerContext } from '../context.ts'
import { contractorNotFound, ownContractor } from './contractors.ts'
import { explainRow, mapInTurns } from './import.ts'
import { CONTRACTOR_COLUMNS, type Contractor, type Import, presentContractor } from './schema.ts'

/**
 * Presents a contractor again that a request has created, as it is now.
 * @throws Refusal `contractor-not-found` if it was deleted
 */
export async function presentCreatedContractor(
  { db, employer }: EmployerContext,
  { ids: [id = ''] }: RecordedOutcome,
): Promise<Contractor> {
  const [row] = await db.select(CONTRACTOR_COLUMNS).from(contractors).where(ownContractor(employer, id))
  if (!row) throw contractorNotFound()
  return presentContractor(row)
}

/** Presents an import again: its contractors as they are now, without deleted ones, and its errors from the rows of the body. */
export async function presentImport(
  { db, employer: { organisation } }: EmployerContext,
  rows: readonly unknown[],
  { ids, existing, errors = [] }: RecordedOutcome,
): Promise<Import> {
  const all = [...ids, ...(existing ?? [])]
  const isIt = and(
    eq(contractors.organisation, organisation),
    inArray(contractors.id, all),
    isNull(contractors.deletedAt),
  )
  const records = await readRows(db, organisation, (reader) =>
    reader.select(CONTRACTOR_COLUMNS).from(contractors).where(isIt),
  )
  const present = new Map(records.map((record) => [record.id, record]))
  const imported = ids.flatMap((id) => present.get(id) ?? [])
  return {
    imported: await mapInTurns(imported, presentContractor),
    ...(existing && { existing: existing.filter((id) => present.has(id)) }),
    errors: await mapInTurns(errors, ({ row, code }) => explainRow(row, rows[row - 1], code)),
  }
}
