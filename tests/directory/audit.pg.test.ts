import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { auditLog } from '#drizzle/schema/audit.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { openStore, type Store, sqlState, transact } from '#lib/db/connection.ts'
import { cloneDatabase } from '../support/database.ts'
import { NOW } from '../support/directory.ts'

const entry = {
  organisation: undefined,
  actor: { kind: 'service', sub: 'test' },
  action: 'batch.created',
  subject: 'b',
} as const

let postgres: Awaited<ReturnType<typeof cloneDatabase>>
let pglite: Store
beforeAll(async () => {
  postgres = await cloneDatabase()
  pglite = openStore({ directory: null })
})
afterAll(async () => {
  await postgres.drop()
  await pglite.close()
})

describe.each(['PostgreSQL', 'PGlite'])('the audit log with %s', (name) => {
  const database = () => (name === 'PGlite' ? pglite : postgres.store).database()

  test('stores entries in order', async () => {
    const db = await database()
    const entries = Array.from({ length: 2_500 }, (_, n) => ({
      ...entry,
      subject: `${n}`,
    }))
    await recordAudit(db, NOW, ...entries)
    await recordAudit(db, NOW)
    const rows = await db.select().from(auditLog).orderBy(auditLog.sequence)
    expect(rows.map(({ subjectId }) => subjectId)).toEqual(entries.map(({ subject }) => subject))
    expect(rows[0]).toMatchObject({
      at: NOW,
      organisation: null,
      actorKind: 'service',
      detail: {},
    })
  })

  test.each([
    sql`UPDATE audit_log SET subject_id = 'x'`,
    sql`UPDATE audit_log SET subject_id = 'x' WHERE false`,
    sql`DELETE FROM audit_log`,
    sql`TRUNCATE audit_log`,
    sql`INSERT INTO audit_log (sequence, at, actor_kind, actor_sub, action, subject_id)
        OVERRIDING SYSTEM VALUE VALUES (1, now(), 'service', 'x', 'batch.created', 'x')
        ON CONFLICT (sequence) DO UPDATE SET subject_id = 'x'`,
  ])('refuses to be changed (%#)', async (statement) => {
    const db = await database()
    await expect(db.execute(statement)).rejects.toSatisfy((error) => sqlState(error) === '23000')
  })

  test('keeps no entry of a transaction that is rolled back', async () => {
    const db = await database()
    const undone = transact(db, async (tx) => {
      await recordAudit(tx, NOW, { ...entry, subject: 'undone' })
      throw new RangeError('no')
    })
    await expect(undone).rejects.toThrow(RangeError)
    expect(await db.select().from(auditLog).where(sql`subject_id = 'undone'`)).toEqual([])
  })
})
