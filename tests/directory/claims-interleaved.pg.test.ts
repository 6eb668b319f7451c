import { sql } from 'drizzle-orm'
import { Client } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { envelopes } from '#drizzle/schema/transfers.ts'
import { type Database, openStore, type Store } from '#lib/db/connection.ts'
import { BATCH_MOVES, PAYOUT_MOVES } from '#lib/directory/batches/progress.ts'
import { changeContractor } from '#lib/directory/contractors/changes.ts'
import { admitUser, type User } from '#lib/directory/users.ts'
import { Refusal, statusOf } from '#lib/refusal/refusal.ts'
import { SponsorRefusal } from '#lib/refusal/sponsor-refusal.ts'
import { findEnvelopes, findOpenTransfers } from '#lib/transfers/rows.ts'
import { cloneDatabase } from '../support/database.ts'
import { contextOf } from '../support/directory.ts'
import { type Employer, employerNamed } from '../support/fixtures.ts'
import { openTestService, type TestService } from '../support/test-service.ts'
import { limits, PLENTY, recordNamed, settleNamed, transferNamed } from '../transfers/quota-cases.ts'
import { findDiscrepancies } from '../transfers/quota-ledger.ts'
import { seededRandom } from '../transfers/random.ts'
import { FAILURE, SUCCESS } from '../transfers/records.ts'
import { findContradictions } from './bookkeeping.ts'

const NOW = new Date('2026-05-01T12:00:00Z')
let clone: Awaited<ReturnType<typeof cloneDatabase>>
let service: TestService
let stores: Store[]
let db: Database
let other: Database
beforeAll(async () => {
  clone = await cloneDatabase()
  service = await openTestService({ database: clone })
  stores = [openStore({ url: clone.url }), openStore({ url: clone.url })]
  const [one, two] = await Promise.all(stores.map((store) => store.database()))
  if (!one || !two) throw new Error('no database')
  ;[db, other] = [one, two]
  for (const table of ['payouts', 'batches']) await watchMoves(table)
})
afterAll(async () => {
  await service.close()
  await clone.drop()
})

/** Has the database record every move of a status, without a unique index: its locks would cause deadlocks. */
async function watchMoves(table: string): Promise<void> {
  await db.execute(
    sql.raw(`
    CREATE TABLE ${table}_moves (before text, after text);
    CREATE FUNCTION note_${table}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      INSERT INTO ${table}_moves VALUES (OLD.status, NEW.status); RETURN NULL; END $$;
    CREATE TRIGGER watch AFTER UPDATE OF status ON ${table} FOR EACH ROW
      WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION note_${table}()`),
  )
}

async function movesOf(table: string): Promise<string[]> {
  const { rows } = (await db.execute(sql.raw(`SELECT DISTINCT before, after FROM ${table}_moves`))) as unknown as {
    rows: { before: string; after: string }[]
  }
  return rows.map(({ before, after }) => `${before} → ${after}`).toSorted()
}

const movesIn = (table: Record<string, readonly string[]>) =>
  Object.entries(table).flatMap(([before, all]) => all.map((after) => `${before} → ${after}`))

const employ = (name: string) => employerNamed(service, name)

/** The actions that the test runs in random order. Each resolves once its SQL transaction has ended. */
function actionsOf(
  employers: Employer[],
  users: User[],
  payees: { id: string; address: string }[][],
  random: (below: number) => number,
) {
  const pick = <Item>(items: readonly Item[]): Item => items[random(items.length)] as Item
  const transfers: string[] = []
  const claims: { innerHash: string; answer: 'recorded' | 'refused' }[] = []
  const batches: { id: string; employer: Employer }[] = []
  let transferCount = 0
  const anyTransfer = () => (transfers.length === 0 ? '' : pick(transfers))
  const instruct = async () => {
    const index = random(employers.length)
    const employer = employers[index] as Employer
    const chosen = (payees[index] ?? []).filter(() => random(3) > 0)
    const batch = batches.length === 0 || random(3) === 0 ? await begin(employer) : pick(batches)
    const instructions = chosen.map(({ id }) => ({ contractorId: id, encryptedAmount: 'sealed' }))
    await ask(employer, `/batches/${batch.id}/instructions`, { instructions })
  }
  const begin = async (employer: Employer) => {
    const batch = { id: String((await ask(employer, '/batches', { name: 'a batch' })).body.id), employer }
    batches.push(batch)
    return batch
  }
  const lock = async () => {
    if (batches.length === 0) return
    const { id, employer } = pick(batches)
    await ask(employer, `/batches/${id}/ready`)
  }
  const claim = async (db: Database) => {
    const index = random(employers.length)
    const name = `${random(1_000_000)} ${++transferCount}`
    const account = employers[index]?.identity.sub ?? ''
    const recipient = pick(payees[index] ?? []).address
    // Every third one competes for the account's open transfer; the others have distinct sequence numbers.
    const sequenceNumber = random(3) === 0 ? BigInt(transferCount - 1) : BigInt(transferCount)
    const transfer = transferNamed(name, { account, recipient, sequenceNumber, createdAt: NOW })
    const { innerHash } = transfer
    const answer = await recordNamed(db, transfer, limits, PLENTY).then(
      () => 'recorded' as const,
      (error: unknown) => {
        if (error instanceof SponsorRefusal) return 'refused' as const
        throw error
      },
    )
    claims.push({ innerHash, answer })
    if (answer === 'recorded') transfers.push(innerHash)
  }
  const settle = async (db: Database) => {
    const innerHash = anyTransfer()
    if (innerHash === '') return
    const how = [SUCCESS, SUCCESS, FAILURE, null][random(4)] ?? null
    await settleNamed(db, innerHash, how && { ...how, hash: innerHash }, NOW)
  }
  const change = async (db: Database) => {
    const index = random(employers.length)
    const payee = pick(payees[index] ?? [])
    const status = random(2) === 0 ? 'inactive' : 'ready'
    const user = users[index]
    if (user) await changeContractor({ ...(await contextOf(service)), db, user }, { id: payee.id, changes: { status } })
  }
  const all = [instruct, instruct, lock, lock, claim, claim, claim, claim, settle, settle, settle, settle, change]
  return { all, claims }
}

/** Whether an action failed; it may be refused, also because it waited too long for a lock. */
const isFailure = (status: number, code: unknown) => status >= 500 && code !== 'unavailable'

/** Sends a request. */
async function ask(employer: Employer, path: string, body?: unknown) {
  const answer = await employer.ask('POST', path, body)
  if (isFailure(answer.status, answer.body.code))
    throw new Error(`POST ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer
}

test.each([1, 2, 3])('keeps counters consistent under random concurrent actions (seed %i)', async (seed) => {
  const random = seededRandom(seed)
  const employers = await Promise.all([employ(`first of ${seed}`), employ(`second of ${seed}`)])
  const users = await Promise.all(employers.map(({ identity }) => admitUser({ db, now: NOW }, identity)))
  const payees = []
  for (const employer of employers) {
    const names = Array.from({ length: 3 }, (_, index) => `payee ${index}`)
    payees.push(await Promise.all(names.map((name) => employer.engage(name))))
  }
  const { all: actions, claims } = actionsOf(employers, users, payees, random)
  const failures: unknown[] = []
  let done = 0
  const work = async (db: Database) => {
    while (done < 600) {
      done += 1
      const action = actions[random(actions.length)]
      await action?.(db).catch((error: unknown) => {
        if (!(error instanceof Refusal) || isFailure(statusOf(error.code), error.code)) failures.push(error)
      })
    }
  }
  await Promise.all(Array.from({ length: 12 }, (_, index) => work(index % 2 === 0 ? db : other)))
  expect(failures).toEqual([])
  expect(new Set(claims.map(({ answer }) => answer))).toEqual(new Set(['recorded', 'refused']))
  const recorded = new Map<string, number>()
  for (const { innerHash } of await db.select({ innerHash: envelopes.innerHash }).from(envelopes)) {
    recorded.set(innerHash, (recorded.get(innerHash) ?? 0) + 1)
  }
  const contradicted = claims.filter(
    ({ innerHash, answer }) => recorded.get(innerHash) !== (answer === 'recorded' ? 1 : undefined),
  )
  expect(contradicted).toEqual([])
  expect(await findContradictions(db)).toEqual([])
  expect(await findDiscrepancies(db)).toEqual([])
  for (const id of await findOpenTransfers(db)) {
    const [envelope] = await findEnvelopes(db, [id])
    await settleNamed(db, envelope?.innerHash ?? '', null, NOW)
  }
  expect(await findContradictions(db)).toEqual([])
})

test('makes only moves in the table of moves', async () => {
  const [payouts, batches] = [await movesOf('payouts'), await movesOf('batches')]
  expect(payouts.filter((move) => !movesIn(PAYOUT_MOVES).includes(move))).toEqual([])
  expect(payouts).toEqual(
    expect.arrayContaining(['draft → ready', 'ready → pending', 'pending → paid', 'ready → canceled']),
  )
  expect(batches.filter((move) => !movesIn(BATCH_MOVES).includes(move))).toEqual([])
  expect(batches).toEqual(expect.arrayContaining(['draft → ready', 'ready → started', 'started → failed']))
})

test('detects a counter that is off by one', async () => {
  await db.execute(sql`UPDATE batches SET payout_count = payout_count + 1 WHERE id = (SELECT id FROM batches LIMIT 1)`)
  expect((await findContradictions(db)).length).toBeGreaterThan(0)
})

test('causes no deadlock', async () => {
  await Promise.all([service, ...stores].map((each) => each.close()))
  const client = new Client({ connectionString: clone.url })
  await client.connect()
  const others = `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`
  // A connection adds its counts when it closes.
  await expect.poll(async () => (await client.query(others)).rows).toEqual([])
  const { rows } = await client.query('SELECT * FROM pg_stat_database WHERE datname = current_database()')
  await client.end()
  expect(Number(rows[0]?.xact_commit)).toBeGreaterThan(1_000)
  expect(rows[0]?.deadlocks).toBe('0')
})
