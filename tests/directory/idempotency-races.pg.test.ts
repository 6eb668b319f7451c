import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { contractors } from '#drizzle/schema/directory.ts'
import { idempotencyKeys } from '#drizzle/schema/idempotency.ts'
import { type Database, openStore, type Store } from '#lib/db/connection.ts'
import { findOutcome, type IdempotentRequest, transactOnce } from '#lib/db/idempotency.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { accountOf, fieldsOf } from '../support/directory.ts'
import { type Gate, makeGate } from '../support/gate.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

let service: TestService
let session: string
let stores: Store[]
let one: Database
let two: Database
let employers = 95_000
beforeAll(async () => {
  service = await openTestService()
  const { url } = service.database
  stores = [openStore({ url }), openStore({ url })]
  ;[one, two] = (await Promise.all(stores.map((store) => store.database()))) as [Database, Database]
})
afterAll(async () => {
  await Promise.all(stores.map((store) => store.close()))
  await service.close()
})
beforeEach(async () => {
  employers += 1
  session = await service.wallet(accountOf(employers))
  await service.db.delete(idempotencyKeys)
})

const NAME = { kind: 'ledger', sub: accountOf(1) } as const
const OTHER = { kind: 'ledger', sub: accountOf(2) } as const
const REQUEST: IdempotentRequest = {
  person: 'a person',
  identity: NAME,
  identities: [NAME],
  key: 'a digest',
  fingerprint: 'a body',
}
const OUTCOME = { ids: ['a record'] }
const codeOf = (error: unknown) => (error instanceof Refusal ? error.code : String(error))

/** Runs a change with this key, which waits for `until` before its commit. */
const change = (db: Database, once: IdempotentRequest, until: () => Promise<void> = async () => undefined) => {
  const started = Promise.withResolvers<void>()
  const work = async () => {
    started.resolve()
    await until()
  }
  const ended = transactOnce({ db, once }, Symbol('an owner'), { work, refer: () => OUTCOME }).then(
    () => 'made',
    codeOf,
  )
  return { started: started.promise, ended }
}

test('refuses a request on another connection at once while the first is in progress, and replays it afterwards', async () => {
  const until = Promise.withResolvers<void>()
  const first = change(one, REQUEST, () => until.promise)
  await first.started
  // Nothing is visible yet, so that only the lock can tell.
  expect(await findOutcome(two, REQUEST)).toBeUndefined()
  expect(await change(two, REQUEST).ended).toBe('idempotency-key-in-use')
  expect(await change(two, { ...REQUEST, key: 'another digest' }).ended).toBe('made')
  expect(await change(two, { ...REQUEST, person: 'another', identity: OTHER, identities: [OTHER] }).ended).toBe('made')
  until.resolve()
  expect(await first.ended).toBe('made')
  expect(await findOutcome(two, REQUEST)).toEqual(OUTCOME)
})

test('does not run a request that looked before the first one committed', async () => {
  expect(await findOutcome(two, REQUEST)).toBeUndefined()
  expect(await change(one, REQUEST).ended).toBe('made')
  expect(await change(two, REQUEST).ended).toBe('idempotency-key-in-use')
  expect(await change(two, { ...REQUEST, fingerprint: 'another body' }).ended).toBe('idempotency-key-reused')
})

test('records nothing for a change that fails, and runs the next attempt', async () => {
  const failing = change(one, REQUEST, () => Promise.reject(new Refusal('batch-locked')))
  expect(await failing.ended).toBe('batch-locked')
  expect(await service.db.$count(idempotencyKeys)).toBe(0)
  expect(await change(two, REQUEST).ended).toBe('made')
})

test('creates one contractor for concurrent requests to two services on one database', async () => {
  const ask = () =>
    service.ask('POST', '/contractors', { session, body: { name: 'Ann' }, headers: { 'Idempotency-Key': 'k' } })
  const answers = await service.withVariables({}, async () => {
    const toOther = Array.from({ length: 5 }, ask)
    service.provide()
    return await Promise.all([...toOther, ...Array.from({ length: 5 }, ask)])
  })
  const made = answers.filter(({ status, headers }) => status === 200 && !headers.has('idempotency-replayed'))
  expect(made).toHaveLength(1)
  for (const { status, body } of answers) {
    expect(status === 200 ? body : body.code).toEqual(status === 200 ? made[0]?.body : 'idempotency-key-in-use')
  }
  const list = await service.ask('GET', '/contractors', { session })
  expect(fieldsOf(list, 'contractors', 'name')).toEqual(['Ann'])
})

/** Sends a request through a gate, which `cut` closes at some point. */
async function sendThroughGate(cut: (gate: Gate) => void): Promise<number> {
  const gate = await makeGate(service.database.url)
  await gate.open()
  try {
    return await service.withVariables({ DATABASE_URL: gate.url }, async () => {
      // The user and its organisation exist already.
      await service.ask('GET', '/contractors', { session })
      cut(gate)
      return (await send()).status
    })
  } finally {
    await gate.shut()
  }
}

const send = () =>
  service.ask('POST', '/contractors', { session, body: { name: 'Ann' }, headers: { 'Idempotency-Key': 'crash' } })
const stateNow = async () => [
  await service.db.$count(
    contractors,
    sql`${contractors.name} = 'Ann' and ${contractors.organisation} = (
    select organisation from identities where sub = ${accountOf(employers)})`,
  ),
  await service.db.$count(idempotencyKeys),
]

test('leaves both the contractor and its record if the connection is lost after the commit', async () => {
  await service.ask('POST', '/batches', { session, body: { name: 'so that it has an organisation' } })
  let gate: Gate | undefined
  const status = await sendThroughGate((opened) => {
    gate = opened
    opened.loseCommit('insert into "idempotency_keys"')
  })
  expect([status, gate?.commitsLost()]).toEqual([503, 1])
  expect(await stateNow()).toEqual([1, 1])
  const again = await send()
  expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([200, 'true'])
  expect(await stateNow()).toEqual([1, 1])
})

test.each(['insert into "contractors"', 'insert into "audit_log"', 'insert into "idempotency_keys"'])(
  'leaves neither if the process dies at %s',
  async (statement) => {
    await service.ask('POST', '/batches', { session, body: { name: 'so that it has an organisation' } })
    // The database ends the connection at the statement, before it responds.
    const table = /"(\w+)"/.exec(statement)?.[1] ?? ''
    const fault = sql.raw(`
      CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
      CREATE TRIGGER die AFTER INSERT ON "${table}" FOR EACH ROW EXECUTE FUNCTION die()`)
    await service.db.execute(fault)
    try {
      expect((await send()).status).toBe(503)
    } finally {
      await service.db.execute(sql.raw('DROP FUNCTION die() CASCADE'))
    }
    expect(await stateNow()).toEqual([0, 0])
    const again = await send()
    expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([200, null])
    expect(await stateNow()).toEqual([1, 1])
  },
)
