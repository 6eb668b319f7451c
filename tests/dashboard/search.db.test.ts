import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { contractors } from '#drizzle/schema/directory.ts'
import {
  batchRow,
  contractorRow,
  envelopeRow,
  identityRow,
  insertRows,
  itemRow,
  jobRow,
  organisationRow,
  payoutRow,
  transferRow,
} from '#lib/cli/seed/rows.ts'
import { MAX_HITS, searchRecords } from '#lib/dashboard/search.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { withLogFields } from '#lib/observability/log.ts'
import { cloneDatabase, type TestDatabase } from '../support/database.ts'
import { accountOf } from '../support/directory.ts'

const NOW = new Date('2026-11-20T12:30:00Z')
const [INNER, OUTER, REFUSED] = ['a'.repeat(64), 'b'.repeat(64), 'c'.repeat(64)] as const
const [EMPLOYER, PAYEE] = [accountOf(50_000), accountOf(50_001)]

let database: TestDatabase
let db: Database
let names: Map<string, string>
let ids: Record<string, string>

beforeAll(async () => {
  database = await cloneDatabase()
  db = await database.store.database()
  const employer = organisationRow({ name: 'Northwind 100%' })
  const other = organisationRow({ name: 'Northern Lights' })
  const organisation = employer.id
  const ada = contractorRow({ organisation, name: 'Ada Lovelace', email: 'Ada@Engines.example', address: PAYEE })
  const crowd = Array.from({ length: MAX_HITS + 5 }, (_, n) => contractorRow({ organisation, name: `Crowd ${n}` }))
  const rene = contractorRow({ organisation, name: 'René Möller', email: 'rene@bücher.example' })
  const removed = contractorRow({ organisation, name: 'Ada Removed', email: 'ada.removed@engines.example' })
  const nora = organisationRow({ name: 'Bakery Elnora' })
  const batch = batchRow({ organisation, name: 'Adagio' })
  const payout = payoutRow({ organisation, batch: batch.id, contractor: ada.id, status: 'ready' })
  const job = jobRow({ userKind: 'idp', userSub: 'auth0|ada' })
  const line = { lineJob: job.id, linePosition: 0 }
  const transfer = transferRow({ account: EMPLOYER, organisation, payout: payout.id, requestId: 'march.1', ...line })
  await insertRows(db, {
    organisations: [nora, employer, other],
    identities: [
      identityRow({ kind: 'ledger', sub: EMPLOYER, organisation }),
      identityRow({
        kind: 'idp',
        sub: 'auth0|ada',
        issuer: 'i',
        email: 'owner@lights.example',
        organisation: other.id,
      }),
    ],
    contractors: [ada, rene, ...crowd, removed],
    batches: [batch],
    payouts: [payout],
    transfers: [transfer],
    envelopes: [envelopeRow({ innerHash: INNER, outerHash: OUTER, transfer: transfer.id })],
    jobs: [job],
    items: [itemRow({ job: job.id, position: 0 })],
  })
  await db.update(contractors).set({ deletedAt: NOW }).where(sql`id = ${removed.id}`)
  const actor = { kind: 'ledger', sub: EMPLOYER } as const
  const detail = { transfer: transfer.id }
  await withLogFields({ requestId: 'march.1' }, () =>
    recordAudit(db, NOW, { organisation, actor, action: 'transfer.sponsored', subject: INNER, detail }),
  )
  await recordAudit(db, NOW, { organisation, actor, action: 'transfer.refused', subject: REFUSED })
  ids = { transfer: transfer.id, payout: payout.id, batch: batch.id, job: job.id, ada: ada.id, employer: organisation }
  names = new Map([
    ...Object.entries({ ...ids, northern: other.id, nora: nora.id, rene: rene.id }).map(
      ([name, id]) => [id, name] as const,
    ),
  ])
})
afterAll(() => database.drop())

/** The records that a text finds, each with the property that matches. */
async function find(q: string): Promise<string[]> {
  const { hits } = await searchRecords(db, q)
  return hits.map(({ id, by }) => `${names.get(id) ?? 'another'} by ${by}`)
}

describe('finds the records of', () => {
  test.each([
    ['an inner hash', () => INNER.toUpperCase(), ['transfer by hash', 'payout by hash', 'job by hash']],
    ['an outer hash', () => OUTER, ['transfer by hash', 'payout by hash', 'job by hash']],
    ['the address of a contractor, in lower case', () => PAYEE.toLowerCase(), ['ada by address']],
    ['the address of an employer', () => EMPLOYER, ['employer by account']],
    ['the sub of a user of the identity provider', () => 'auth0|ada', ['northern by account']],
    ['the email of a contractor, in any case', () => ' aDA@engines.EXAMPLE ', ['ada by email']],
    ['an email in the other spelling of its domain', () => 'rene@xn--bcher-kva.example', ['rene by email']],
    ['an email as it was entered', () => 'Rene@bücher.example', ['rene by email']],
    ['a name with its accents apart', () => 'Rene\u0301 M', ['rene by name']],
    ['the beginning of the email of an employer', () => 'owner@', ['northern by email']],
    ['the beginning of names, in any case', () => 'ADA', ['ada by name', 'batch by name']],
    ['the beginning of the names of organisations', () => 'north', ['northern by name', 'employer by name']],
    ['a name with the wildcards of SQL', () => 'northwind 100%', ['employer by name']],
    ['a part of a name, in any case', () => 'LOVE', ['ada by name']],
    ['a part of a name with its accents apart', () => 'mo\u0308ll', ['rene by name']],
    [
      'the beginnings of names before their other parts',
      () => 'nor',
      ['northern by name', 'employer by name', 'nora by name'],
    ],
    ['a part of a name with the wildcards of SQL', () => 'wind 100%', ['employer by name']],
    ['a part of the email of a contractor', () => '@ENGINES', ['ada by email']],
    ['a part of an email in the other spelling of its domain', () => '@bücher.example', ['rene by email']],
    ['a part of an email around its dot', () => 'gines.exa', ['ada by email']],
    ['a part of the email of an employer', () => '@lights.e', ['northern by email']],
    ['the beginnings of names and emails by one letter', () => 'o', ['northern by email']],
    ['the id of a request', () => 'march.1', ['transfer by request id']],
  ])('%s', async (_, q, found) => {
    expect(await find(q())).toEqual(found)
  })

  test.each(['transfer', 'payout', 'batch', 'job', 'ada', 'employer'])(
    'an id, or its first eight digits: %s',
    async (name) => {
      const id = ids[name] ?? ''
      for (const q of [id, id.toUpperCase(), id.slice(0, 8)]) expect(await find(q)).toEqual([`${name} by id`])
    },
  )

  test.each([
    '',
    ' ',
    '%',
    'gh',
    'x@',
    'removed',
    '...',
    'Ada Removed',
    '0'.repeat(64),
    `\0' or true --`,
    '\ud800',
    'é'.repeat(300),
  ])('nothing for %j', async (q) =>
    expect(await searchRecords(db, q)).toEqual({ hits: [], entries: [], hasMore: false }),
  )
})

test('names the organisation and the account of a record', async () => {
  const organisation = { id: ids.employer, name: 'Northwind 100%' }
  expect((await searchRecords(db, 'march.1')).hits).toMatchObject([{ name: EMPLOYER, organisation }])
  expect((await searchRecords(db, 'ada')).hits).toMatchObject([
    { name: 'Ada Lovelace', organisation },
    { name: 'Adagio', organisation },
  ])
})

test.each([
  ['march.1', 'transfer.sponsored', INNER],
  [REFUSED, 'transfer.refused', REFUSED],
])('finds the audit entries of a request or of a refused transaction: %s', async (q, action, subjectId) => {
  expect((await searchRecords(db, q)).entries).toMatchObject([
    { action, subjectId, actorSub: EMPLOYER, createdAt: NOW },
  ])
})

test('lists no more than MAX_HITS of a kind, and says so', async () => {
  const { hits, hasMore } = await searchRecords(db, 'crowd')
  expect([hits.length, hasMore]).toEqual([MAX_HITS, true])
})
