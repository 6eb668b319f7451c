import { Keypair, Transaction } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { relayChannels } from '#drizzle/schema/relay.ts'
import { OPERATIONS } from '#lib/api/interface.ts'
import type { Operation } from '#lib/api/operation.ts'
import { refusalsOf } from '#lib/api/operation-refusals.ts'
import { buildChallenge } from '#lib/auth/sep10/challenge.ts'
import { perProcess } from '#lib/observability/per-process.ts'
import type { Sent } from '../support/api-client.ts'
import type { SignedInPayer } from '../support/test-service.ts'
import { type FullService, openFullService } from './full-service.ts'

/**
 * Sends invalid requests to every route and checks that its route sends each 400 code in the document. The tests' API
 * client checks the reverse.
 */
let service: FullService
let ada: SignedInPayer
let places: Record<string, string>
beforeAll(async () => {
  service = await openFullService()
  ada = await service.employ()
  const { token } = service.ledger.network
  const seenAt = new Date(Date.now() + 3_600_000)
  await service.db.insert(relayChannels).values({ token, address: 'G', seenAt, runs: true })
  const contractor = await service.hire(ada)
  const batch = await service.ask('POST', '/batches', { session: ada.session, body: { name: 'March' } })
  places = { '/contractors/{id}': `/contractors/${contractor}` }
  places['/batches/{id}/instructions'] = `/batches/${batch.body.id}/instructions`
})
afterAll(() => service?.close())

const SEED = Keypair.fromRawEd25519Seed(new Uint8Array(32)).secret()
const TEXTS = ['', 'wrong', 'a\u0007b', SEED, `${SEED}@example.com`, 'x'.repeat(5_000), '0']
const OTHERS = [undefined, null, 0, 7, true, {}, []]

/** Copies of `example`, each with one value replaced. */
function corrupt(example: unknown): unknown[] {
  const whole = [...TEXTS, ...OTHERS]
  if (Array.isArray(example)) {
    return [...whole, ...corrupt(example[0]).map((first) => [first, ...example.slice(1)])]
  }
  if (typeof example !== 'object' || example === null) return whole
  const fields = Object.entries(example)
  return [
    ...whole,
    ...fields.flatMap(([name, value]) => corrupt(value).map((other) => ({ ...example, [name]: other }))),
  ]
}

/** Bodies that are refused before they are parsed. */
const BROKEN: Sent[] = [
  { body: '{' },
  { body: '{}', meanwhile: () => Promise.reject(new Error('gone')) },
  { body: Uint8Array.of(0x61, 0x3d, 0xff), type: 'application/x-www-form-urlencoded' },
]

/** Forgets how many requests the users have sent: these tests send more than a user may. */
const forgetRequests = () => perProcess('request allowances', () => new Map()).clear()

/** With the pay in clear text that no example shows. */
const wholeExample = ({ id, body }: Operation) =>
  id === 'createContractor' || id === 'changeContractor'
    ? { ...body?.example, rate: { amount: '4200.5', currency: 'USDC' } }
    : body?.example

async function answersOf(operation: Operation): Promise<Set<string>> {
  forgetRequests()
  const { method, caller, body, query, idempotent } = operation
  const path = places[operation.path] ?? operation.path
  const session = caller === 'anybody' ? undefined : ada.session
  const answers = new Set<string>()
  const ask = async (at: string, sent: Sent) => {
    const answer = await service.ask(method, at, { session, ...sent })
    if (answer.status !== 400) return
    answers.add(String(answer.body.code))
    expect(String(answer.body.error)).not.toMatch(/Invalid|expected|received|undefined/)
  }
  for (const corrupted of body ? corrupt(wholeExample(operation)) : [])
    await ask(path, { body: JSON.stringify(corrupted) ?? '' })
  for (const broken of body ? BROKEN : []) await ask(path, broken)
  for (const name of Object.keys(query?.example ?? {})) {
    for (const text of TEXTS) await ask(`${path}?${new URLSearchParams({ [name]: text })}`, {})
    await ask(`${path}?${name}s=1`, {})
  }
  if (idempotent) await ask(path, { body: '{}', headers: { 'Idempotency-Key': 'two words' } })
  const more = OF_ITS_OWN[operation.id]
  for (const [at, sent] of more?.() ?? []) await ask(at, sent)
  return answers
}

const wallet = Keypair.random()

/** Queries that only a challenge refuses. */
const challengeQueries = (path: string) => (): [string, Sent][] => {
  const account = wallet.publicKey()
  const server = service.running.settings.sep10.signer.publicKey()
  const variants = [
    { account: server },
    { account, memo: '1' },
    { account, home_domain: 'evil.example' },
    { account: 'wrong' },
  ]
  return variants.map((query) => [`${path}?${new URLSearchParams(Object.entries(query))}`, {}])
}
const challenges = (path: string) => (): [string, Sent][] => {
  const { sep10 } = service.running.settings
  const challengeAt = (at: Date) => {
    const challenge = buildChallenge(sep10, { account: wallet.publicKey() }, at)
    return new Transaction(challenge.transaction, challenge.network_passphrase)
  }
  const now = new Date()
  const [old, unsigned, foreign, good] = [
    challengeAt(new Date(0)),
    challengeAt(now),
    challengeAt(now),
    challengeAt(now),
  ]
  for (const challenge of [old, foreign, good]) challenge.sign(wallet)
  foreign.sign(Keypair.random())
  return [old, unsigned, foreign, good, good].map((challenge) => [path, { body: { transaction: challenge.toXdr() } }])
}

const OF_ITS_OWN: Record<string, () => [string, Sent][]> = {
  importContractors: () => [['/contractors/bulk', { body: JSON.stringify({ rows: Array(2_001).fill(0) }) }]],
  getChallenge: challengeQueries('/auth/sep10/challenge'),
  getStandardChallenge: challengeQueries('/auth/sep10'),
  signInWithWallet: challenges('/auth/sep10/verify'),
  signInWithStandard: challenges('/auth/sep10'),
}

const TAKING = OPERATIONS.filter(({ body, query, idempotent }) => body || query || idempotent)

describe.each(TAKING.map((operation) => [operation.id, operation] as const))('%s', (_, operation) => {
  test('responds with every code that the document lists for 400', async () => {
    const answers = await answersOf(operation)
    expect(
      refusalsOf(operation)
        .get(400)
        ?.filter((code) => !answers.has(code)),
    ).toEqual([])
  })
})
