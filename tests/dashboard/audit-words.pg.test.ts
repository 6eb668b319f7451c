import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ActorKind, AuditDetail } from '#drizzle/schema/audit.ts'
import { AUDIT_ACTIONS, type AuditAction } from '#drizzle/schema/audit-actions.ts'
import { relayChannels } from '#drizzle/schema/relay.ts'
import {
  batchRow,
  contractorRow,
  identityRow,
  insertRows,
  organisationRow,
  payoutRow,
  transferRow,
} from '#lib/cli/seed/rows.ts'
import type { AuditLine } from '#lib/dashboard/audit.ts'
import { ACTIONS_IN_WORDS, describeEntries, nameActor } from '#lib/dashboard/audit-words.ts'
import { plainText, type Sentence } from '#lib/dashboard/sentence.ts'
import { type CapturedDatabase, openCaptured } from '../support/captured.ts'
import { accountOf } from '../support/directory.ts'

const NOW = new Date('2026-11-20T12:30:00Z')
const [EMPLOYER, PAYEE, CHANNEL, STRANGER] = [
  accountOf(60_000),
  accountOf(60_001),
  accountOf(60_002),
  accountOf(60_003),
]

const short = (address: string) => `${address.slice(0, 4)}…${address.slice(-4)}`

const acme = organisationRow({ name: 'Acme' })
const organisation = acme.id
const ada = contractorRow({
  organisation,
  name: 'Ada Lovelace',
  address: PAYEE,
  linkedKind: 'ledger',
  linkedSub: PAYEE,
})
const march = batchRow({ organisation, name: 'March' })
const payout = payoutRow({ organisation, batch: march.id, contractor: ada.id, status: 'ready' })
const transfer = transferRow({ account: EMPLOYER, organisation, payout: payout.id })
const registration = transferRow({ kind: 'register', account: PAYEE, recipient: EMPLOYER, organisation })
const topUp = transferRow({ account: STRANGER, recipient: CHANNEL })
const GONE = crypto.randomUUID()

let database: CapturedDatabase
beforeAll(async () => {
  database = await openCaptured()
  await insertRows(database.db, {
    organisations: [acme],
    identities: [
      identityRow({ sub: EMPLOYER, organisation }),
      identityRow({ sub: PAYEE }),
      identityRow({ kind: 'idp', sub: 'auth0|grace', email: 'grace@acme.example' }),
    ],
    contractors: [ada],
    batches: [march],
    payouts: [payout],
    transfers: [transfer, registration, topUp],
  })
  await database.db.insert(relayChannels).values({ token: 'C', address: CHANNEL, seenAt: NOW })
})
afterAll(() => database?.close())

type By = [kind: ActorKind, sub: string]
const EMPLOYED: By = ['ledger', EMPLOYER]
const SERVICE: By = ['service', 'settlement']
const OPERATOR: By = ['operator', 'Olga']

function lineOf(action: AuditAction, subjectId: string, detail: AuditDetail = {}, by: By = EMPLOYED): AuditLine {
  const [actorKind, actorSub] = by
  const of = { organisation, organisationName: 'Acme', requestId: null }
  return { sequence: 1, createdAt: NOW, action, subjectId, detail, actorKind, actorSub, ...of }
}

async function describe(...line: Parameters<typeof lineOf>): Promise<Sentence> {
  const [described] = await describeEntries(database.db, [lineOf(...line)])
  return described?.sentence ?? []
}

const of = { contractor: ada.id, batch: march.id, payout: payout.id, transfer: transfer.id ?? '' }
const paying = { transfer: of.transfer }
const HOOK = { host: 'erp.example' }
const noted = { note: 'a new key' }

/** An entry of each action, and its sentence. */
const SENTENCES: Record<AuditAction, [subject: string, sentence: string, detail?: AuditDetail, by?: By]> = {
  'organisation.founded': [organisation, 'Acme was founded'],
  'organisation.named': [organisation, `Acme was renamed by ${short(STRANGER)}`, {}, ['ledger', STRANGER]],
  'organisation.dissolved': [organisation, 'Acme was dissolved'],
  'identity.joined': ['idp:auth0|grace', 'A sign-in was added by Acme: grace@acme.example'],
  'identity.separated': ['idp:auth0|grace', 'A sign-in was removed by Acme: grace@acme.example'],
  'contractor.created': [of.contractor, 'Ada Lovelace was added by Acme', { status: 'ready' }],
  'contractor.updated': [
    of.contractor,
    'Ada Lovelace’s record was changed by Acme: name, email',
    { fields: ['name', 'email'], status: 'ready' },
  ],
  'contractor.activated': [of.contractor, 'Ada Lovelace is registered with the token', {}, SERVICE],
  'contractor.invited': [
    of.contractor,
    'Ada Lovelace was invited by email by Olga: “a new key”',
    { version: 2, mailed: true, ...noted },
    OPERATOR,
  ],
  'contractor.mail-failed': [
    of.contractor,
    'The invite of Ada Lovelace could not be mailed: the mail server refused the address or the message',
    { reason: 'mail-refused' },
  ],
  'contractor.linked': [
    of.contractor,
    'The invite of Ada Lovelace was accepted by Ada Lovelace',
    { status: 'ready' },
    ['ledger', PAYEE],
  ],
  'contractor.removed': [of.contractor, 'Ada Lovelace was removed by Acme'],
  'batch.created': [of.batch, 'Batch “March” was created by Acme'],
  'batch.removed': [GONE, 'A batch was deleted by Acme', { payouts: 3 }],
  'batch.instructed': [of.batch, 'Payouts were added to batch “March” by Acme: 12', { payouts: 12 }],
  'batch.locked': [of.batch, 'Batch “March” was locked by Acme'],
  'batch.sealed': [of.batch, 'Amounts of batch “March” were sealed to the relay by Acme', { payouts: 12 }],
  'batch.run': [of.batch, 'A run of batch “March” was started by Acme', { payouts: 12 }],
  'batch.approved': [of.batch, `A run of batch “March” was signed by ${PAYEE}, passed on by Acme`, { signer: PAYEE }],
  'batch.approval-void': [
    of.batch,
    'Earlier signatures on a run of batch “March” no longer count: seal-changed, payout-removed',
    { changes: ['seal-changed', 'payout-removed'] },
  ],
  'batch.started': [of.batch, 'Batch “March” was started by Acme'],
  'batch.completed': [of.batch, 'Batch “March” was completed', {}, SERVICE],
  'batch.failed': [of.batch, 'Batch “March” failed', {}, SERVICE],
  'batch.run-completed': [of.batch, 'The run of batch “March” was completed', {}, SERVICE],
  'batch.run-failed': [of.batch, 'The run of batch “March” failed', {}, SERVICE],
  'payout.created': [of.payout, 'The payout to Ada Lovelace in batch “March” was added by Acme'],
  'payout.readied': [of.payout, 'The payout to Ada Lovelace in batch “March” is ready to be paid, locked by Acme'],
  'payout.claimed': [
    of.payout,
    'The transfer to Ada Lovelace was recorded for the payout to Ada Lovelace in batch “March”',
    paying,
    SERVICE,
  ],
  'payout.paid': [of.payout, 'The payout to Ada Lovelace in batch “March” was paid', paying, SERVICE],
  'payout.failed': [of.payout, 'The payout to Ada Lovelace in batch “March” failed', {}, SERVICE],
  'payout.canceled': [GONE, 'A payout was canceled by Acme'],
  'webhook.created': [GONE, 'A webhook was added by Acme: erp.example', HOOK],
  'webhook.removed': [GONE, 'A webhook was removed by Acme: erp.example', HOOK],
  'webhook.rotated': [GONE, 'The secret of a webhook was rotated by Acme: erp.example', HOOK],
  'webhook.disabled': [GONE, 'A webhook was disabled: erp.example', HOOK, SERVICE],
  'webhook.redelivered': [GONE, 'An event was sent to a webhook again by Acme: erp.example', HOOK],
  'webhook.enabled': [GONE, 'A webhook was enabled again by Acme: erp.example', HOOK],
  'payout.found-paid': [
    of.payout,
    'A payment of the payout to Ada Lovelace in batch “March”, which was canceled or already paid, was found on the ledger',
    paying,
    SERVICE,
  ],
  'transfer.sponsored': ['a'.repeat(64), 'The transfer to Ada Lovelace was accepted from Acme', paying],
  'transfer.settled': [
    'b'.repeat(64),
    'The transfer to Ada Lovelace was settled: failed',
    { ...paying, status: 'failed' },
  ],
  'transfer.refused': [
    'c'.repeat(64),
    'A transfer to Ada Lovelace from Acme was refused by the sponsor: another transfer of this account is open',
    { reason: 'another-open', contractor: of.contractor },
  ],
  'transfer.looked-up': [
    String(registration.id),
    'The registration of Acme was looked up on the ledger for Olga',
    {},
    OPERATOR,
  ],
  'operator.admitted': ['a new browser of 1a2b', 'Olga signed in to the dashboard', {}, OPERATOR],
  'operator.rejected': [
    'a new browser of 1a2b',
    'A wrong password was given at the dashboard',
    {},
    ['operator', 'dashboard'],
  ],
  'channel.retired': [CHANNEL, `Channel ${short(CHANNEL)} was retired by Olga: “a new key”`, noted, OPERATOR],
  'channel.paused': [CHANNEL, `Channel ${short(CHANNEL)} was paused by Olga: “a new key”`, noted, OPERATOR],
  'channel.resumed': [CHANNEL, `Channel ${short(CHANNEL)} was resumed by Olga: “a new key”`, noted, OPERATOR],
  'payments.stopped': [
    'C',
    `Payments were stopped because of an unknown transaction of channel ${short(CHANNEL)}`,
    { channel: CHANNEL },
    ['service', 'relay'],
  ],
  'payments.resumed': ['C', 'Payments were resumed', { found: 2 }, ['service', 'relay']],
  'attention.acknowledged': [
    of.batch,
    'A notice about batch “March” was acknowledged by Olga: “a new key”',
    { condition: 'payoutsFailed', ...noted },
    OPERATOR,
  ],
  'audit.dropped': [
    '2026-06',
    'Entries from before 2026-06 were deleted from the audit log by Olga',
    { entries: 9 },
    OPERATOR,
  ],
}

test.each(Object.entries(SENTENCES))('describes %s', async (action, [subject, sentence, detail, by]) => {
  expect(plainText(await describe(action as AuditAction, subject, detail, by))).toBe(sentence)
})

test('describes each action without names for the filter', () => {
  const words = new Set(ACTIONS_IN_WORDS.map(([, sentence]) => sentence))
  expect(words.size).toBe(AUDIT_ACTIONS.length)
  expect([...words].filter((sentence) => !/^[A-Z][^{}[\]]+[a-z]$/.test(sentence))).toEqual([])
  expect(words).toContain('A contractor’s record was changed')
})

test('links the names in a sentence to their records', async () => {
  const mentions = (await describe('payout.paid', of.payout)).flatMap((part) => (typeof part === 'string' ? [] : part))
  expect(mentions).toEqual([
    { text: 'payout', of: { type: 'payout', id: of.payout } },
    { text: 'Ada Lovelace', of: { type: 'contractor', id: of.contractor } },
    { text: '“March”', of: { type: 'batch', id: of.batch } },
  ])
})

test.each<[string, By, string]>([
  ['an organisation', EMPLOYED, 'Acme'],
  ['a contractor', ['ledger', PAYEE], 'Ada Lovelace'],
  ['a channel', ['ledger', CHANNEL], `channel ${short(CHANNEL)}`],
  ['a person without an organisation', ['idp', 'auth0|grace'], 'grace@acme.example'],
  ['a stranger', ['ledger', STRANGER], short(STRANGER)],
  ['an operator', OPERATOR, 'Olga'],
])('names %s as the actor', async (_, by, name) => {
  expect(plainText(await describe('batch.created', of.batch, {}, by))).toBe(`Batch “March” was created by ${name}`)
})

test('names the actor of a filter', async () => {
  expect(await nameActor(database.db, { kind: 'ledger', sub: EMPLOYER })).toBe('Acme')
  expect(await nameActor(database.db, { kind: 'service', sub: 'relay' })).toBe('the service (relay)')
})

test('describes what remains of an entry whose records are gone', async () => {
  const gone = { transfer: GONE, contractor: GONE, condition: 'jobFailed' }
  const sentenceOf = async (action: AuditAction) => plainText(await describe(action, GONE, gone, SERVICE))
  expect(await sentenceOf('contractor.updated')).toBe('A contractor’s record was changed')
  expect(await sentenceOf('payout.claimed')).toBe('A transfer was recorded for a payout')
  expect(await sentenceOf('transfer.sponsored')).toBe('A transfer was accepted')
  expect(await sentenceOf('attention.acknowledged')).toBe('A notice about a relay job was acknowledged')
})

test('shows an action of a newer version by its name', async () => {
  const unknown = 'payout.postponed' as AuditAction
  expect(plainText(await describe(unknown, of.payout, {}, SERVICE))).toBe('Payout.postponed')
})

test('looks up the names of a page with one statement for each type', async () => {
  const page = Object.entries(SENTENCES).map(([action, [subject, , detail, by]]) =>
    lineOf(action as AuditAction, subject, detail, by),
  )
  const statements = await database.capture(() => describeEntries(database.db, [...page, ...page]))
  // contractors, batches, payouts, transfers, users and channels
  expect(statements).toHaveLength(6)
})
