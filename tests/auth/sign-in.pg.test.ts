import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { count } from 'drizzle-orm'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { usedChallenges } from '#drizzle/schema/transfers.ts'
import { purgeUsedChallenges } from '#lib/auth/sep10/claim.ts'
import { signInWithWallet } from '#lib/auth/sep10/sign-in.ts'
import { readChallenge } from '#lib/auth/sep10/verification.ts'
import { verifySession } from '#lib/auth/session.ts'
import { type Database, openStore, type Store, type StoreLocation } from '#lib/db/connection.ts'
import { cloneDatabase, type TestDatabase } from '../support/database.ts'
import { accountEntry, type FakeRpc, type RpcFault, signerKey, startFakeRpc } from '../support/fake-rpc.ts'
import { asV0, later, NOW, NOW_SECONDS, pair, sep10, sessions, signedChallenge, withSignatures } from './challenges.ts'

const [alice, bob] = [pair('alice'), pair('bob')]
const address = alice.publicKey()
const used = { code: 'challenge-used', message: 'invalid challenge: it has already been used' }
let fake: FakeRpc

beforeAll(async () => {
  fake = await startFakeRpc()
})
afterAll(() => fake.close())
beforeEach(() => {
  fake.accounts.clear()
  fake.fault = undefined
})

/** Nothing listens there. */
const NOWHERE = { url: 'postgres://postgres@127.0.0.1:1/nothing' }

const places: [string, () => Promise<{ location: StoreLocation; drop(): Promise<void> }>][] = [
  [
    'PostgreSQL',
    async () => {
      const { url, drop } = await cloneDatabase()
      return { location: { url }, drop }
    },
  ],
  [
    'PGlite',
    async () => {
      const directory = await mkdtemp(join(tmpdir(), 'payroll-sign-in-'))
      return { location: { directory }, drop: () => rm(directory, { recursive: true }) }
    },
  ],
]

describe.each(places)('signing in, on %s', (_name, open) => {
  let place: Awaited<ReturnType<typeof open>>
  let store: Store
  let db: Database

  beforeAll(async () => {
    place = await open()
    store = openStore(place.location)
    db = await store.database()
  })
  afterAll(async () => {
    await store.close()
    await place.drop()
  })
  beforeEach(() => db.delete(usedChallenges))

  const signIn = (transaction: string, now = NOW) =>
    signInWithWallet({ database: async () => db, rpc: fake.server, sep10, sessions }, transaction, now)
  const rows = async () => (await db.select({ n: count() }).from(usedChallenges))[0]?.n

  test('returns a session of the account, with the hash of the challenge as its id', async () => {
    const transaction = signedChallenge(address, [alice])
    const answer = await signIn(transaction, later(10))
    expect(answer).toEqual({ session: expect.any(String), kind: 'ledger', sub: address })
    const hash = Buffer.from(readChallenge(sep10, transaction, NOW).hash).toString('hex')
    expect(await verifySession(sessions, answer.session, later(10))).toEqual({
      kind: 'ledger',
      sub: address,
      id: hash,
      expiresAt: later(3610),
    })
    expect(decodeJwt(answer.session).iat).toBe(NOW_SECONDS + 10)
    const stored = await db
      .select({ hash: usedChallenges.hash, expiresAt: usedChallenges.expiresAt })
      .from(usedChallenges)
    expect(stored).toEqual([{ hash, expiresAt: later(300 + 600) }])
  })

  test('accepts a challenge once, even in another encoding', async () => {
    const transaction = signedChallenge(address, [alice])
    await signIn(transaction)
    const encodings = [
      transaction,
      transaction.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, ''),
      `\n${transaction} `,
      withSignatures(transaction, (signatures) => signatures.toReversed()),
      asV0(transaction),
    ]
    for (const encoding of encodings) {
      expect(readChallenge(sep10, encoding, NOW).account).toBe(address)
      await expect(signIn(encoding)).rejects.toMatchObject(used)
    }
    for (const late of [301, 450, 599]) {
      await expect(signIn(transaction, later(late))).rejects.toMatchObject({ code: 'challenge-expired' })
    }
    expect(await rows()).toBe(1)
  })

  test('creates one session for twenty concurrent requests', async () => {
    const transaction = signedChallenge(address, [alice])
    const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => signIn(transaction)))
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const outcome of outcomes) if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject(used)
    expect(await rows()).toBe(1)
  })

  test('creates two sessions for two challenges of one account', async () => {
    await signIn(signedChallenge(address, [alice]))
    await signIn(signedChallenge(address, [alice]))
    expect(await rows()).toBe(2)
  })

  test('does not use up a challenge with an invalid copy', async () => {
    fake.accounts.set(
      address,
      accountEntry(address, { thresholds: [1, 2, 2, 2], signers: [{ key: signerKey(bob), weight: 1 }] }),
    )
    const nonce = new Uint8Array(48).fill(5)
    await expect(signIn(signedChallenge(address, [alice], NOW, nonce))).rejects.toMatchObject({
      code: 'challenge-invalid',
    })
    await expect(signIn(signedChallenge(address, [], NOW, nonce))).rejects.toMatchObject({ code: 'challenge-invalid' })
    expect(await rows()).toBe(0)
    expect(await signIn(signedChallenge(address, [alice, bob], NOW, nonce))).toMatchObject({ sub: address })
  })

  test('makes no RPC call for a challenge without the account’s signature', async () => {
    const before = fake.calls
    await expect(signIn(signedChallenge(address, []))).rejects.toMatchObject({ code: 'challenge-invalid' })
    await expect(signIn('garbage')).rejects.toMatchObject({ code: 'challenge-invalid' })
    expect(fake.calls).toBe(before)
  })

  test('refuses a used challenge after a restart', async () => {
    const transaction = signedChallenge(address, [alice])
    await signIn(transaction)
    await store.close()
    store = openStore(place.location)
    db = await store.database()
    await expect(signIn(transaction)).rejects.toMatchObject(used)
  })

  test('purges a used challenge only 900 seconds after the sign-in', async () => {
    await signIn(signedChallenge(address, [alice]))
    await purgeUsedChallenges(db, later(900))
    expect(await rows()).toBe(1)
    await purgeUsedChallenges(db, later(901))
    expect(await rows()).toBe(0)
  })
})

describe('an RPC that fails', () => {
  let clone: TestDatabase
  beforeAll(async () => {
    clone = await cloneDatabase()
  })
  afterAll(() => clone.drop())
  const signIn = (signers: Parameters<typeof signedChallenge>[1]) => {
    const context = { database: clone.store.database, rpc: fake.server, sep10, sessions }
    return signInWithWallet(context, signedChallenge(address, signers, NOW, new Uint8Array(48).fill(6)), NOW)
  }

  const faults: RpcFault[] = ['http-503', 'json-rpc-error', 'hang', 'hang-up', 'headless', 'wrong-entry', 'wrong-type']
  test.each(faults)('gives no session to the master key of a multisig account during the fault %s', async (fault) => {
    const db = await clone.store.database()
    await db.delete(usedChallenges)
    const entry = accountEntry(address, { thresholds: [1, 2, 2, 2], signers: [{ key: signerKey(bob), weight: 1 }] })
    fake.accounts.set(address, entry)
    fake.fault = fault
    // Both attempts are awaited from their start, because an unhandled rejection would end the run.
    const attempts = [[alice], [alice, bob]].map((signers) =>
      expect(signIn(signers)).rejects.toMatchObject({ code: 'unavailable' }),
    )
    await Promise.all(attempts)
    expect(await db.query.usedChallenges.findMany()).toEqual([])
    fake.fault = undefined
    await expect(signIn([alice])).rejects.toMatchObject({ code: 'challenge-invalid' })
    expect(await signIn([alice, bob])).toMatchObject({ sub: address })
  })

  test('responds 503 while the database is unreachable, and accepts the challenge afterwards', async () => {
    const gone = openStore(NOWHERE)
    const transaction = signedChallenge(address, [alice])
    const context = { rpc: fake.server, sep10, sessions }
    await expect(signInWithWallet({ ...context, database: gone.database }, transaction, NOW)).rejects.toMatchObject({
      code: 'unavailable',
    })
    await gone.close()
    expect(await signInWithWallet({ ...context, database: clone.store.database }, transaction, NOW)).toMatchObject({
      sub: address,
    })
  })
})
