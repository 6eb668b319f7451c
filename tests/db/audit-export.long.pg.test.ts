import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { desc, eq, sql } from 'drizzle-orm'
import type { Pool } from 'pg'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { auditLog } from '#drizzle/schema/audit.ts'
import { dropAudit, exportAudit } from '#lib/db/audit-export.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { CHILD_VARIABLES } from '../support/child-variables.ts'
import { startDatabase, type TestDatabase } from '../support/database.ts'

const BEFORE = new Date('2026-06-01T00:00:00Z')
let database: TestDatabase
let db: Database
let folder: string
beforeAll(async () => {
  database = await startDatabase()
  db = await database.store.database()
  folder = await mkdtemp(join(tmpdir(), 'payroll-audit-'))
})
afterAll(async () => {
  await database?.drop()
  await rm(folder, { recursive: true, force: true })
})

const write = (at: string, count: number) =>
  recordAudit(
    db,
    new Date(at),
    ...Array.from({ length: count }, (_, index) => ({
      organisation: undefined,
      actor: { kind: 'service', sub: 'settlement' } as const,
      action: 'payout.paid' as const,
      subject: `${at} ${index}`,
    })),
  )

test('exports the months before a given one, deletes them, and leaves the log append-only', async () => {
  await write('2026-04-30T23:59:59Z', 1_500)
  await write('2026-05-31T23:59:59Z', 2)
  await write('2026-06-01T00:00:00Z', 3)
  const path = join(folder, 'audit.ndjson')
  const query = vi.spyOn((db as unknown as { $client: Pool }).$client, 'query')
  const exported = await exportAudit(db, { before: BEFORE, path })
  // It reads in read-only transactions, which have connections of the pool to themselves.
  expect(query).not.toHaveBeenCalled()
  query.mockRestore()
  expect(exported.count).toBe(1_502)
  const lines = (await readFile(path, 'utf8')).trim().split('\n')
  expect(lines).toHaveLength(1_502)
  expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ action: 'payout.paid', subjectId: '2026-05-31T23:59:59Z 1' })
  await expect(exportAudit(db, { before: BEFORE, path })).rejects.toMatchObject({ code: 'EEXIST' })

  const now = new Date('2026-06-02T00:00:00Z')
  const last = { before: BEFORE, last: exported.last, actor: 'command line', now }
  expect(await dropAudit(db, last)).toBe(1_502)
  const left = await db.select().from(auditLog).orderBy(auditLog.sequence)
  expect(left.map(({ action }) => action)).toEqual(['payout.paid', 'payout.paid', 'payout.paid', 'audit.dropped'])
  expect(left.at(-1)).toMatchObject({ action: 'audit.dropped', subjectId: '2026-06', detail: { entries: 1_502 } })
  for (const change of [
    sql`DELETE FROM audit_log`,
    sql`UPDATE audit_log SET actor_sub = ''`,
    sql`TRUNCATE audit_log`,
  ]) {
    await expect(db.execute(change)).rejects.toMatchObject({ cause: { message: 'audit_log is append-only' } })
  }
})

test('records each part that it has deleted, even if a later one fails', async () => {
  const first = await write('2026-03-01T00:00:00Z', 10_000).then(() => lastEntry())
  await write('2026-03-01T00:00:00Z', 5)
  const last = await lastEntry()
  await db.execute(sql`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF old.sequence > ${sql.raw(String(first))} THEN RAISE 'the disk is full'; END IF; RETURN old; END $$`)
  await db.execute(sql`CREATE TRIGGER refuse BEFORE DELETE ON audit_log FOR EACH ROW EXECUTE FUNCTION refuse()`)
  const given = { before: BEFORE, last, actor: 'command line', now: BEFORE }
  await expect(dropAudit(db, given)).rejects.toMatchObject({ cause: { message: 'the disk is full' } })
  await db.execute(sql`DROP TRIGGER refuse ON audit_log`)
  const [entry] = await db.select().from(auditLog).orderBy(desc(auditLog.sequence)).limit(1)
  expect(entry).toMatchObject({ action: 'audit.dropped', detail: { entries: 10_000 } })
  expect(await dropAudit(db, given)).toBe(5)
})

const lastEntry = async () =>
  (await db.select().from(auditLog).orderBy(desc(auditLog.sequence)).limit(1))[0]?.sequence ?? 0

test('deletes nothing for a role that does not own the table, and nothing that was not exported', async () => {
  await write('2026-04-01T00:00:00Z', 2)
  const path = join(folder, 'more.ndjson')
  const { last } = await exportAudit(db, { before: BEFORE, path })
  await write('2026-04-01T00:00:00Z', 1)
  const given = { before: BEFORE, last, actor: 'command line', now: BEFORE }
  await db.execute(sql`CREATE ROLE payroll_auditor`)
  await db.execute(sql`GRANT ALL ON ALL TABLES IN SCHEMA public TO payroll_auditor`)
  await db
    .transaction(async (tx) => {
      await tx.execute(sql`SET LOCAL ROLE payroll_auditor`)
      await expect(dropAudit(tx as unknown as Database, given)).rejects.toMatchObject({ cause: { code: '42501' } })
      throw new Error('rolled back')
    })
    .catch((error: Error) => expect(error.message).toBe('rolled back'))
  expect(await dropAudit(db, given)).toBe(2)
  const { rows } = (await db.execute(
    sql`SELECT count(*)::int AS left FROM audit_log WHERE at < ${BEFORE.toISOString()}`,
  )) as unknown as {
    rows: unknown[]
  }
  expect(rows).toEqual([{ left: 1 }])
  await db.execute(sql`DROP OWNED BY payroll_auditor`)
  await db.execute(sql`DROP ROLE payroll_auditor`)
})

const AUGUST = '2026-08-01T00:00:00Z'
const countIn = (at: string) => db.$count(auditLog, eq(auditLog.at, new Date(at)))

test('the command deletes what it has exported, of months that ended at least two days ago', async () => {
  const run = async (before: string, file: string) => {
    const args = ['lib/cli/audit.ts', 'export', '--before', before, '--out', join(folder, file), '--drop']
    const env = { ...CHILD_VARIABLES, NODE_ENV: 'test' as const, DATABASE_URL: database.url }
    return (await promisify(execFile)(process.execPath, args, { env })).stdout
  }
  await write(AUGUST, 3)
  expect(await run('2026-09', 'late.ndjson')).toMatch(/^(\d+) entries written.*\n\1 entries deleted\n$/)
  expect(await countIn(AUGUST)).toBe(0)
  await expect(run('9999-01', 'future.ndjson')).rejects.toMatchObject({
    stderr: expect.stringContaining('two days ago'),
  })
})
