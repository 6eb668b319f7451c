import { readFileSync } from 'node:fs'
import { Keypair, StrKey } from '@stellar/stellar-sdk'
import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { describe, expect, test } from 'vitest'
import { NotConfigured } from '#app/(operator)/overview/not-configured.tsx'
import { FOREIGN } from '#lib/archive/identity.ts'
import { readEnvironment, VARIABLE_NAMES } from '#lib/config/environment.ts'
import { generateRelayKey, publicHalf } from '#lib/config/relay-key.ts'
import type { FoundProblem } from '#lib/server/readiness.ts'
import { serviceAttention } from '#lib/server/service-attention.ts'
import type { ServiceState } from '#lib/server/service-condition.ts'
import { composeSettings } from '#lib/server/settings.ts'

const seed = (byte: number) => Keypair.fromRawEd25519Seed(new Uint8Array(32).fill(byte)).secret()
const token = StrKey.encodeContract(new Uint8Array(32).fill(7))

/** The minimal variables of a preview deployment. */
const PREVIEW = {
  DATABASE_URL: 'postgres://h/d',
  STELLAR_NETWORK: 'testnet',
  SESSION_SECRET: 'a secret of the overview tests, 32 bytes and more',
  SPONSOR_SEED: seed(1),
  OPERATOR_PASSWORD: 'correct horse',
}
/** The variables of a deployment with every feature. */
const WHOLE = {
  ...PREVIEW,
  CONFIDENTIAL_TOKEN: token,
  IDP_ISSUER: 'https://login.example',
  IDP_AUDIENCE: 'us',
  FAUCET_SEED: seed(2),
  BATCH_ENABLED: 'true',
  RELAY_PUBLIC_KEY: JSON.stringify(publicHalf(generateRelayKey())),
  SMTP_URL: 'smtp://mail.example',
  MAIL_FROM: 'pay@pay.example',
  CRON_SECRET: 'a secret of schedulers',
  METRICS_TOKEN: 'a token of Prometheus',
}

/** The text of each line of the list. */
function linesOf(variables: Record<string, string>): string[] {
  const settings = composeSettings(readEnvironment(variables))
  const html = renderToStaticMarkup(createElement(NotConfigured, { settings }))
  return [...html.matchAll(/<li[^>]*>(.*?)<\/li>/g)].map(([, line = '']) =>
    line.replace('</span><span', ' $&').replace(/<[^>]+>/g, ''),
  )
}

test('lists all disabled features of a preview, and how to enable them', () => {
  expect(linesOf(PREVIEW)).toEqual([
    'Users can sign in with a wallet, but not by email. Set IDP_ISSUER, IDP_AUDIENCE',
    'The faucet is off. Set FAUCET_SEED, CONFIDENTIAL_TOKEN',
    'Batch jobs for relays are refused. Set BATCH_ENABLED, RELAY_PUBLIC_KEY, CONFIDENTIAL_TOKEN',
    'Invites are not mailed: employers send the links themselves. Set SMTP_URL, MAIL_FROM',
    '/api/cron/sweep is closed: no scheduler can run the chores. Set CRON_SECRET',
    '/api/metrics is closed: no metrics can be read. Set METRICS_TOKEN',
  ])
})

test('shows no list if everything is configured', () => {
  expect(linesOf(WHOLE)).toEqual([])
})

test.each<[Record<string, string>, string]>([
  [{ FAUCET_SEED: '' }, 'The faucet is off. Set FAUCET_SEED'],
  [{ BATCH_ENABLED: 'false' }, 'Batch jobs for relays are refused. Set BATCH_ENABLED, RELAY_PUBLIC_KEY'],
  [{ RELAY_PUBLIC_KEY: '' }, 'Batch jobs for relays are refused. Set BATCH_ENABLED, RELAY_PUBLIC_KEY'],
  [{ CRON_SECRET: '' }, '/api/cron/sweep is closed: no scheduler can run the chores. Set CRON_SECRET'],
])('lists %j alone as one line', (variables, line) => {
  expect(linesOf({ ...WHOLE, ...variables })).toEqual([line])
})

test('names only variables that the service reads', () => {
  const variables = linesOf({ ...PREVIEW, SPONSOR_SEED: '' }).flatMap((line) => line.replace(/.* Set /, '').split(', '))
  expect(variables.filter((name) => !VARIABLE_NAMES.some((variable) => variable === name))).toEqual([])
})

const QUIET: Omit<ServiceState, 'settings'> = {
  ready: {
    ok: true,
    version: '1.0.0',
    database: { ok: true },
    ledger: { ok: true, latestLedger: 7, age: 1 },
    sponsor: { ok: true, address: 'GSPONSOR', availableXlm: '1000.0000000' },
    relay: { ok: true, channels: 1 },
    archive: { ok: true, ingestedThrough: 1234, behind: 0, gaps: 0 },
  },
  problems: [],
  spending: {
    everybody: { account: '*', held: 0n, used: 79n, count: 1 },
    busiest: [],
    floatHeld: 0n,
    spentInDay: 0n,
    hours: [],
  },
  limits: { transfersPerAccount: 500, stroopsPerAccount: 1n, dailyBudget: 100n, callsBudget: 100n },
  channels: [],
  stop: undefined,
  startsRelay: false,
  startedAt: new Date('2026-11-20T08:00:00Z'),
  now: new Date('2026-11-20T12:00:00Z'),
}
const stateOf = (fields: Partial<ServiceState> = {}): ServiceState => ({
  ...QUIET,
  settings: composeSettings(readEnvironment(WHOLE)),
  ...fields,
})

test('reports nothing for a healthy service', () => {
  expect(serviceAttention(stateOf())).toEqual([])
})

test.each<[Record<string, string>, what: string, remedy: RegExp]>([
  [
    { SPONSOR_SEED: '' },
    'Every transfer is refused: no fees are paid',
    /^Set SPONSOR_SEED to the value that npm run setup wrote, .* restart them\.$/,
  ],
  [
    { CONFIDENTIAL_TOKEN: '' },
    'Every transfer is refused, and no contractor becomes ready: no token is configured',
    /^Set CONFIDENTIAL_TOKEN to the value that npm run setup wrote, /,
  ],
  [
    { SPONSOR_CONTRACTS: 'none' },
    'Every transfer is refused: no contract is sponsored',
    /^Ask the other operators .* remove SPONSOR_CONTRACTS .* restart them/,
  ],
])('%j needs attention, since no payroll works without it', (variables, what, remedy) => {
  const settings = composeSettings(readEnvironment({ ...WHOLE, ...variables }))
  const items = serviceAttention(stateOf({ settings }))
  expect(items).toMatchObject([{ what, since: QUIET.startedAt, remedy: expect.stringMatching(remedy) }])
})

const CHANNEL = {
  address: 'GCHANNEL',
  seenAt: new Date(0),
  isRunning: true,
  isHalted: false,
  isPaused: false,
  job: null,
  position: null,
  isSending: false,
  receivedAt: null,
  receivedHash: null,
  problemSince: null,
  isRetired: false,
  reconcileProblem: null,
  reconciledStop: null,
}

test.each<[Partial<ServiceState>, what: string, words: RegExp]>([
  [
    { ready: { ...QUIET.ready, archive: { ok: false, ingestedThrough: 7, behind: 900, historyLeft: 80, gaps: 0 } } },
    'The archive is far behind',
    /900 ledgers.*in 80 ledgers \(about 0 h\).*log/,
  ],
  [
    { ready: { ...QUIET.ready, archive: { ok: false, behind: 900, problem: 'ingestion has not started' } } },
    'The archive is far behind',
    /ingestion has not started.*log/,
  ],
  [
    {
      ready: {
        ...QUIET.ready,
        archive: { ok: true, ingestedThrough: 7, behind: 0, gaps: 1, missingFrom: 3_000, missingThrough: 4_999 },
      },
    },
    'The archive has a gap',
    /between 3,000 and 4,999 .*STELLAR_RPC_URL/,
  ],
  [{ ready: { ...QUIET.ready, database: { ok: false } } }, 'The database cannot be reached', /DATABASE_URL/],
  [
    { ready: { ...QUIET.ready, ledger: { ok: false, problem: 'the last ledger is old' } } },
    'The ledger cannot be followed',
    /the last ledger is old \(soroban-testnet.stellar.org\).*STELLAR_RPC_URL .* week of history.* restart them/,
  ],
  [
    {
      ready: {
        ...QUIET.ready,
        sponsor: { ok: false, address: 'GSPONSOR', problem: 'the float is low', availableXlm: '7.5' },
      },
    },
    'The sponsor’s balance is low',
    /7.50 XLM are available; 100 transfers with the highest fee need 50.00 XLM, .* cost 0.00 XLM Send 93 testnet XLM to GSPONSOR\./,
  ],
  [
    {
      spending: {
        everybody: { account: '*', held: 1n, used: 79n, count: 1 },
        busiest: [{ account: 'GBUSY', held: 0n, used: 70n, count: 1, organisation: null }],
        floatHeld: 0n,
        spentInDay: 0n,
        hours: [
          { at: new Date('2026-11-19T23:00:00Z'), stroops: 90n },
          { at: new Date('2026-11-20T10:00:00Z'), stroops: 79n },
          { at: new Date('2026-11-20T11:00:00Z'), stroops: 1n },
        ],
      },
    },
    'Today’s budget is nearly used',
    /1 transfer has used 0.000008 of 0.00001 XLM \(80 %\) since 00:00 UTC; GBUSY made 1 of them \(its limit is 500\).*busiest accounts.*SPONSOR_DAILY_BUDGET to 200 /,
  ],
  [{ ready: { ...QUIET.ready, relay: { ok: false, channels: 0 } } }, 'No relay is running', /Set up a relay/],
  [{ channels: [{ ...CHANNEL, problem: 'registration' }] }, 'cannot pay', /not registered.*npm run setup/],
])('lists case %$', (state, what, words) => {
  const [item, ...others] = serviceAttention(stateOf(state))
  expect([item?.what, others]).toEqual([what, []])
  expect(`${item?.why} ${item?.remedy}`).toMatch(words)
  expect(item?.affected).toBeTruthy()
  // One step without alternatives or conditions.
  expect(item?.remedy).not.toMatch(/\b(or|if|unless)\b|^The service/)
})

test('says since when the ledger is late, and when a relay was last seen', () => {
  const ledger = { ok: false, problem: 'the last ledger is old', latestLedger: 7, age: 600 }
  expect(serviceAttention(stateOf({ ready: { ...QUIET.ready, ledger } }))).toMatchObject([
    { since: new Date('2026-11-20T11:50:00Z') },
  ])
  const seenAt = new Date('2026-11-20T11:00:00Z')
  const channels = [
    { ...CHANNEL, seenAt: new Date(0), isRunning: false, problem: null },
    { ...CHANNEL, seenAt, isRunning: false, problem: null },
  ]
  const stopped = { ready: { ...QUIET.ready, relay: { ok: false, channels: 0 } }, channels }
  expect(serviceAttention(stateOf(stopped))).toMatchObject([{ what: 'No relay is running', since: seenAt }])
})

test('sends the operator of a network that was reset to the guide, not to another RPC', () => {
  const since = new Date('2026-11-20T11:30:00Z')
  const ledger = { ok: false, problem: FOREIGN, latestLedger: 7, age: 1 }
  const problems = [{ part: 'ledger', problem: FOREIGN, since, cause: undefined } as const]
  const [item, ...others] = serviceAttention(stateOf({ ready: { ...QUIET.ready, ledger }, problems }))
  expect(others).toEqual([])
  expect(item).toMatchObject({ since, what: 'The RPC serves another network', why: expect.stringContaining(FOREIGN) })
  const guide = /^Follow docs\/operate.md, “(.*)”\.$/.exec(item?.remedy ?? '')?.[1]
  expect(readFileSync('docs/operate.md', 'utf8')).toContain(`\n### ${guide}\n`)
})

test('says since when a part of the service or a channel has had its problem', () => {
  const found = new Date('2026-11-20T11:30:00Z')
  const failed = { ok: false, problem: 'it cannot be reached' }
  const gap = { ok: true, behind: 0, gaps: 1, problem: 'ledgers are missing' }
  const ready = { ...QUIET.ready, database: failed, ledger: failed, archive: gap }
  const problemOf = (part: FoundProblem['part'], problem = 'it cannot be reached', since = found) => {
    return { part, problem, since, cause: undefined }
  }
  // Each problem of a part has its own time.
  const late = problemOf('archive', 'ingestion is far behind: events will be lost', new Date(0))
  const problems = [problemOf('database'), problemOf('ledger'), late, problemOf('archive', 'ledgers are missing')]
  const dry = { ...failed, availableXlm: '1' }
  const channel = { ...CHANNEL, problem: 'balance' as const, problemSince: found }
  for (const state of [
    { ready, problems },
    { ready: { ...QUIET.ready, sponsor: dry }, problems: [problemOf('sponsor')] },
    { ready: { ...QUIET.ready, relay: { ...failed, channels: 0 } }, problems: [problemOf('relay')] },
    { channels: [channel] },
  ]) {
    const items = serviceAttention(stateOf(state))
    expect(new Set(items.map((item) => item.since))).toEqual(new Set([found]))
  }
})

test('reports no balance of the sponsor while the ledger cannot be reached', () => {
  const sponsor = { ok: false, problem: 'the sponsor cannot be looked up' }
  const ledger = { ok: false, problem: 'the ledger cannot be reached' }
  const items = serviceAttention(stateOf({ ready: { ...QUIET.ready, sponsor, ledger } }))
  expect(items.map(({ what }) => what)).toEqual(['The ledger cannot be followed'])
  expect(serviceAttention(stateOf({ ready: { ...QUIET.ready, sponsor } }))).toMatchObject([
    { what: 'The sponsor’s balance is unknown', why: 'the sponsor cannot be looked up' },
  ])
})

test('ignores a channel without a relay, and a relay that is starting', () => {
  expect(serviceAttention(stateOf({ channels: [{ ...CHANNEL, isRunning: false, problem: 'account' }] }))).toEqual([])
  const starting = { ready: { ...QUIET.ready, relay: { ok: false, channels: 0 } }, startsRelay: true }
  expect(serviceAttention(stateOf(starting))).toEqual([])
})

test('says why a part cannot be reached, in the words of the error', () => {
  const cause = 'connect ECONNREFUSED 10.0.0.7:5432'
  const problems = [{ part: 'database', problem: 'the database cannot be reached', since: new Date(0), cause } as const]
  const ready = { ...QUIET.ready, database: { ok: false, problem: 'the database cannot be reached' } }
  expect(serviceAttention(stateOf({ ready, problems }))[0]?.why).toMatch(/^connect ECONNREFUSED 10.0.0.7:5432; /)
})

test('names a channel in full where something has to be sent to it', () => {
  const [item] = serviceAttention(stateOf({ channels: [{ ...CHANNEL, problem: 'balance' }] }))
  expect(item?.remedy).toBe('Send USDC to GCHANNEL by confidential transfer.')
})

test('does not yet blame a channel that was just announced and is not checked yet', () => {
  const channel = (seconds: number) => ({
    ...CHANNEL,
    problem: 'account' as const,
    problemSince: new Date(QUIET.now.getTime() - seconds * 1_000),
  })
  expect(serviceAttention(stateOf({ channels: [channel(59)] }))).toEqual([])
  expect(serviceAttention(stateOf({ channels: [channel(60)] }))).toHaveLength(1)
})

describe('while payments are stopped', () => {
  const stop = { since: new Date(QUIET.now.getTime() - 60_000), found: 2 }
  const noticeOf = (fields: Partial<ServiceState>) => {
    const [item, ...others] = serviceAttention(stateOf({ stop, ...fields }))
    expect(others).toEqual([])
    return item
  }

  test('says that they go on by themselves, as long as no channel needs a word', () => {
    expect(noticeOf({ channels: [{ ...CHANNEL, problem: null }] })).toMatchObject({
      what: 'Payments are stopped',
      since: stop.since,
      isStop: true,
      why: expect.stringMatching(/; 2 payments were found$/),
      remedy: expect.stringMatching(/^Wait a few minutes: .* payments go on by themselves\.$/),
    })
  })

  test('names each channel that keeps them stopped, and why', () => {
    const channel = { ...CHANNEL, problem: null, reconcileProblem: 'history-gap' as const }
    expect(noticeOf({ channels: [channel] })).toMatchObject({
      causes: [expect.stringMatching(/^GCHA…NNEL: neither the RPC nor an archive has all its events/)],
      remedy: expect.stringMatching(/^Follow docs\/operate\.md, “Payments are stopped”/),
    })
  })

  test('names a channel whose key no relay has after ten minutes, unless it is retired or reconciled', () => {
    const old = { since: new Date(QUIET.now.getTime() - 11 * 60_000), found: 0 }
    const causesOf = (fields: Partial<ServiceState['channels'][number]>) =>
      noticeOf({ stop: old, channels: [{ ...CHANNEL, problem: null, ...fields }] })?.causes
    expect(causesOf({})).toEqual([expect.stringMatching(/^GCHA…NNEL: no running relay has its key/)])
    for (const fields of [{ isRetired: true }, { reconciledStop: old.since }]) expect(causesOf(fields)).toEqual([])
  })
})
