import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { xdr } from '@stellar/stellar-sdk'
import { count } from 'drizzle-orm'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { usedChallenges } from '#drizzle/schema/transfers.ts'
import { purgeUsedChallenges } from '#lib/auth/sep10/claim.ts'
import { signInWithWallet } from '#lib/auth/sep10/sign-in.ts'
import { readChallenge } from '#lib/auth/sep10/verification.ts'
import { verifySession } from '#lib/auth/session.ts'
import { type Database, openStore, type Store, type StoreLocation } from '#lib/db/connection.ts'
import { cloneDatabase } from '../support/database.ts'
import { accountEntry, type FakeRpc, type RpcFault, signerKey, startFakeRpc } from '../support/fake-rpc.ts'
import { later, NOW, NOW_SECONDS, pair, sep10, sessions, signedChallenge } from './challenges.ts'

const [alice, bob] = [pair('alice'), pair('bob')]
const address = alice.publicKey()
const used = { code: 'challenge-used', message: 'invalid challenge: it has been used already' }
let fake: FakeRpc

beforeAll(async () => {
  fake = await startFakeRpc()
})
afterAll(() => fake.close())
beforeEach(() => {
  fake.accounts.clear()
  fake.fault = undefined
})

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

  test('gives a session of the account, with the hash of the challenge as its id', async () => {
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

  test('once: every other encoding of the challenge is the same challenge', async () => {
    const transaction = signedChallenge(address, [alice])
    await signIn(transaction)
    const envelope = xdr.TransactionEnvelope.fromXdr(transaction, 'base64')
    if (envelope.type !== 'envelopeTypeTx' || envelope.v1.tx.cond.type !== 'precondTime')
      throw new Error('no challenge')
    const { tx, signatures } = envelope.v1
    const reversed = xdr.TransactionEnvelope.envelopeTypeTx(
      new xdr.TransactionV1Envelope({ tx, signatures: signatures.toReversed() }),
    )
    const v0 = xdr.TransactionEnvelope.envelopeTypeTxV0(
      new xdr.TransactionV0Envelope({
        tx: new xdr.TransactionV0({
          sourceAccountEd25519: sep10.signer.rawPublicKey(),
          fee: tx.fee,
          seqNum: tx.seqNum,
          timeBounds: envelope.v1.tx.cond.value,
          memo: tx.memo,
          operations: tx.operations,
          ext: xdr.TransactionV0Ext.v0(),
        }),
        signatures,
      }),
    )
    const encodings = [
      transaction,
      transaction.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, ''),
      `\n${transaction} `,
      reversed.toXdr('base64'),
      v0.toXdr('base64'),
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

  test('twenty at once: one session', async () => {
    const transaction = signedChallenge(address, [alice])
    const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => signIn(transaction)))
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const outcome of outcomes) if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject(used)
    expect(await rows()).toBe(1)
  })

  test('two challenges of one account are two sessions', async () => {
    await signIn(signedChallenge(address, [alice]))
    await signIn(signedChallenge(address, [alice]))
    expect(await rows()).toBe(2)
  })

  test('a bad copy does not use up the challenge', async () => {
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

  const faults: RpcFault[] = ['http-503', 'json-rpc-error', 'hang', 'hang-up', 'headless', 'wrong-entry', 'wrong-type']
  test.each(faults)('the master key of a multisig account gets no session out of an RPC with %s', async (fault) => {
    const entry = accountEntry(address, { thresholds: [1, 2, 2, 2], signers: [{ key: signerKey(bob), weight: 1 }] })
    fake.accounts.set(address, entry)
    fake.fault = fault
    const nonce = new Uint8Array(48).fill(6)
    for (const signers of [[alice], [alice, bob]]) {
      await expect(signIn(signedChallenge(address, signers, NOW, nonce))).rejects.toMatchObject({ code: 'unavailable' })
    }
    expect(await rows()).toBe(0)
    fake.fault = undefined
    await expect(signIn(signedChallenge(address, [alice], NOW, nonce))).rejects.toMatchObject({
      code: 'challenge-invalid',
    })
    expect(await signIn(signedChallenge(address, [alice, bob], NOW, nonce))).toMatchObject({ sub: address })
  })

  test('what is not signed by the account costs the RPC nothing', async () => {
    const before = fake.calls
    await expect(signIn(signedChallenge(address, []))).rejects.toMatchObject({ code: 'challenge-invalid' })
    await expect(signIn('garbage')).rejects.toMatchObject({ code: 'challenge-invalid' })
    expect(fake.calls).toBe(before)
  })

  test('after a restart a challenge is still used', async () => {
    const transaction = signedChallenge(address, [alice])
    await signIn(transaction)
    await store.close()
    store = openStore(place.location)
    db = await store.database()
    await expect(signIn(transaction)).rejects.toMatchObject(used)
  })

  test('the purge takes what is long past use and leaves the rest', async () => {
    await signIn(signedChallenge(address, [alice]))
    await purgeUsedChallenges(db, later(900))
    expect(await rows()).toBe(1)
    await purgeUsedChallenges(db, later(901))
    expect(await rows()).toBe(0)
  })
})

test('a database that is out of reach is 503, and the challenge is still good afterwards', async () => {
  const gone = openStore({ directory: null })
  const db = await gone.database()
  await gone.close()
  const transaction = signedChallenge(address, [alice])
  const given = { rpc: fake.server, sep10, sessions }
  await expect(signInWithWallet({ ...given, database: async () => db }, transaction, NOW)).rejects.toMatchObject({
    code: 'unavailable',
  })
  const store = openStore({ directory: null })
  expect(await signInWithWallet({ ...given, database: store.database }, transaction, NOW)).toMatchObject({
    sub: address,
  })
  await store.close()
})
