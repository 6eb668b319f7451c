import { Keypair } from '@stellar/stellar-sdk'
import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import { Health } from '#app/(operator)/overview/health.tsx'
import type { Check, Readiness } from '#lib/server/readiness.ts'

const READY: Readiness = {
  ok: true,
  version: '1.0.0',
  database: { ok: true },
  ledger: { ok: true, latestLedger: 1234, age: 1 },
  sponsor: { ok: true, availableXlm: '9998.0000000' },
  relay: { ok: true, channels: 3 },
  archive: { ok: true, ingestedThrough: 1234, behind: 0, gaps: 0 },
}

/** The text of each light. */
function lightsOf(ready: Partial<Readiness>, embedsDatabase = true, startsRelay = false): string[] {
  const html = renderToStaticMarkup(
    createElement(Health, { ready: { ...READY, ...ready }, embedsDatabase, startsRelay }),
  )
  return [...html.matchAll(/<dt[^>]*>(.*?)<\/dt><dd[^>]*>(.*?)<\/dd>/g)].map(([, name = '', rest = '']) =>
    `${name}: ${rest.replace(/<[^>]+>/g, ' ')}`.replace(/\s+/g, ' ').trim(),
  )
}

/** The colour of the shape before the text. */
function toneOf(relay: Check): string | undefined {
  const html = renderToStaticMarkup(
    createElement(Health, { ready: { ...READY, relay }, embedsDatabase: false, startsRelay: false }),
  )
  return /text-(good|busy|bad|faint)"/.exec(html.slice(html.indexOf('>Relay<')).replace(/text-xs text-faint/g, ''))?.[1]
}

const channel = Keypair.fromRawEd25519Seed(new Uint8Array(32).fill(7)).publicKey()
const short = `${channel.slice(0, 4)}…${channel.slice(-4)}`

test.each<[Check, words: string, tone: string]>([
  [{ ok: true, channels: 1 }, 'Running one channel', 'good'],
  [{ ok: true, channels: 3 }, 'Running 3 channels', 'good'],
  [{ ok: true, channels: 3, problem: `${channel}: balance` }, `Running 3 channels; ${short}: balance`, 'busy'],
  [
    { ok: false, channels: 1, problem: `no channel can pay; ${channel}: registration` },
    `Cannot pay no channel can pay; ${short}: registration`,
    'bad',
  ],
  [
    { ok: false, channels: 0, problem: 'no relay is running; no channel can pay' },
    'None running start one: npm run relay',
    'bad',
  ],
  [{ ok: false, problem: 'the relays cannot be looked up' }, 'Unknown the database is unreachable', 'faint'],
  [{ ok: true, configured: false }, 'Off batch execution is disabled', 'faint'],
])('shows the relay’s light for %j', (relay, words, tone) => {
  expect(lightsOf({ relay }, false).at(-1)).toBe(`Relay: ${words}`)
  expect(toneOf(relay)).toBe(tone)
})

test.each<[Check, words: string]>([
  [READY.sponsor, 'Paying float is sufficient'],
  [{ ok: false, problem: 'the float is low' }, 'Cannot pay the float is low'],
  [{ ok: true, configured: false }, 'Off set SPONSOR_SEED to pay fees'],
  [
    {
      ok: true,
      configured: false,
      problem: 'nothing to pay for: set CONFIDENTIAL_TOKEN',
      availableXlm: '9998.0000000',
    },
    'Off nothing to pay for: set CONFIDENTIAL_TOKEN',
  ],
])('shows the sponsor’s light for %j', (sponsor, words) => {
  expect(lightsOf({ sponsor })[2]).toBe(`Sponsor: ${words}`)
})

test.each<[Check, words: string]>([
  [READY.archive, 'Complete through ledger 1,234'],
  [{ ...READY.archive, finalThrough: 1200 }, 'Complete through ledger 1,234, last read twice: 1,200'],
  [{ ok: true, behind: 9, problem: 'nothing is archived yet' }, 'Starting nothing is archived yet'],
  [
    { ok: false, behind: 9_000, problem: 'ingestion has not started: events will be lost' },
    'Not started ingestion has not started: events will be lost',
  ],
  [{ ok: false, problem: 'the archive cannot be looked up' }, 'Unreachable the archive cannot be looked up'],
])('shows the archive’s light for %j', (archive, words) => {
  expect(lightsOf({ archive })[3]).toBe(`Archive: ${words}`)
})

test('names the kind of database', () => {
  expect(lightsOf({}, true)[0]).toBe('Database: Reachable PGlite, embedded')
  expect(lightsOf({}, false)[0]).toBe('Database: Reachable PostgreSQL')
  expect(lightsOf({ database: { ok: false } })[0]).toMatch(/^Database: Unreachable/)
})

test('shows the service’s relay as starting, and as missing after a while', () => {
  const relay = { ok: false, channels: 0, problem: 'no relay is running; no channel can pay' }
  expect(lightsOf({ relay }, true, true).at(-1)).toBe('Relay: Starting soon after the service')
  const filling = { ok: false, channels: 3, problem: `no channel can pay; ${channel}: account` }
  expect(lightsOf({ relay: filling }, true, true).at(-1)).toBe('Relay: Starting soon after the service')
  expect(lightsOf({ relay }, true, false).at(-1)).toBe('Relay: None running see the log')
})
