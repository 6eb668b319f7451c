import { Keypair, StrKey } from '@stellar/stellar-sdk'
import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import { NotConfigured } from '#app/(operator)/overview/not-configured.tsx'
import { readEnvironment, VARIABLE_NAMES } from '#lib/config/environment.ts'
import { generateRelayKey, publicHalf } from '#lib/config/relay-key.ts'
import { composeSettings } from '#lib/server/settings.ts'

const seed = (byte: number) => Keypair.fromRawEd25519Seed(new Uint8Array(32).fill(byte)).secret()
const token = StrKey.encodeContract(new Uint8Array(32).fill(7))

/** What a preview deployment has that works at all. */
const PREVIEW = {
  DATABASE_URL: 'postgres://h/d',
  STELLAR_NETWORK: 'testnet',
  SESSION_SECRET: 'a secret of the overview tests, 32 bytes and more',
  SPONSOR_SEED: seed(1),
  OPERATOR_PASSWORD: 'correct horse',
}
/** And what has everything. */
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

/** The lines of the list, as they are read. */
function linesOf(variables: Record<string, string>): string[] {
  const settings = composeSettings(readEnvironment(variables))
  const html = renderToStaticMarkup(createElement(NotConfigured, { settings }))
  return [...html.matchAll(/<li[^>]*>(.*?)<\/li>/g)].map(([, line = '']) =>
    line.replace('</span><span', ' $&').replace(/<[^>]+>/g, ''),
  )
}

test('a preview lists all that is off, and what turns it on', () => {
  expect(linesOf(PREVIEW)).toEqual([
    'Every transfer is refused: there is nothing to pay for. Set CONFIDENTIAL_TOKEN',
    'No contractor becomes ready, and there is no vault. Set CONFIDENTIAL_TOKEN',
    'Nobody signs in by e-mail, only with a wallet. Set IDP_ISSUER, IDP_AUDIENCE',
    'The faucet gives no test money. Set FAUCET_SEED, CONFIDENTIAL_TOKEN',
    'No batch jobs are taken for relays. Set BATCH_ENABLED, RELAY_PUBLIC_KEY, CONFIDENTIAL_TOKEN',
    'Invites are not mailed: employers pass the links on. Set SMTP_URL, MAIL_FROM',
    'No scheduler may sweep: /api/cron/sweep is closed. Set CRON_SECRET',
    'Nobody reads the metrics: /api/metrics is closed. Set METRICS_TOKEN',
  ])
})

test('where all is set there is no list', () => {
  expect(linesOf(WHOLE)).toEqual([])
})

test.each<[Record<string, string>, string]>([
  [{ SPONSOR_SEED: '' }, 'No fees are paid: every transfer is turned away. Set SPONSOR_SEED'],
  [{ SPONSOR_CONTRACTS: 'none' }, 'Every transfer is refused: there is nothing to pay for. Set SPONSOR_CONTRACTS'],
  [{ FAUCET_SEED: '' }, 'The faucet gives no test money. Set FAUCET_SEED'],
  [{ BATCH_ENABLED: 'false' }, 'No batch jobs are taken for relays. Set BATCH_ENABLED, RELAY_PUBLIC_KEY'],
  [{ RELAY_PUBLIC_KEY: '' }, 'No batch jobs are taken for relays. Set BATCH_ENABLED, RELAY_PUBLIC_KEY'],
  [{ CRON_SECRET: '' }, 'No scheduler may sweep: /api/cron/sweep is closed. Set CRON_SECRET'],
])('%j alone is one line', (variables, line) => {
  expect(linesOf({ ...WHOLE, ...variables })).toEqual([line])
})

test('names variables that are read', () => {
  const named = linesOf({ ...PREVIEW, SPONSOR_SEED: '' }).flatMap((line) => line.replace(/.* Set /, '').split(', '))
  expect(named.filter((name) => !VARIABLE_NAMES.some((known) => known === name))).toEqual([])
})
