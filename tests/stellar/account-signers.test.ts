import { createHash } from 'node:crypto'
import { Keypair, xdr } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { readAccountAuth } from '#lib/stellar/account.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { weighSignatures } from '#lib/stellar/node/signature-weight.ts'
import { accountEntry, type FakeRpc, type RpcFault, signerKey, startFakeRpc } from '../support/fake-rpc.ts'

const pair = (name: string) => Keypair.fromRawEd25519Seed(createHash('sha256').update(name).digest())
const [alice, bob, carol] = [pair('alice'), pair('bob'), pair('carol')]
const address = alice.publicKey()
let fake: FakeRpc

beforeAll(async () => {
  fake = await startFakeRpc()
})
afterAll(() => fake.close())
beforeEach(() => {
  fake.accounts.clear()
  fake.fault = undefined
})

describe('readAccountAuth', () => {
  test('finds that an account does not exist', async () => {
    expect(await readAccountAuth(fake.server, address)).toEqual({ exists: false })
  })

  test('requires one signer where thresholds are 0', async () => {
    fake.accounts.set(address, accountEntry(address))
    expect(await readAccountAuth(fake.server, address)).toEqual({
      exists: true,
      thresholds: { low: 1, medium: 1, high: 1 },
      signers: [{ key: address, weight: 1 }],
    })
  })

  test('reads thresholds and weights as unsigned bytes, and caps a weight at 255', async () => {
    fake.accounts.set(
      address,
      accountEntry(address, { thresholds: [255, 128, 200, 255], signers: [{ key: signerKey(bob), weight: 4000 }] }),
    )
    expect(await readAccountAuth(fake.server, address)).toEqual({
      exists: true,
      thresholds: { low: 128, medium: 200, high: 255 },
      signers: [
        { key: address, weight: 255 },
        { key: bob.publicKey(), weight: 255 },
      ],
    })
  })

  test('omits signers without weight or without an ed25519 key', async () => {
    const entry = accountEntry(address, {
      thresholds: [0, 1, 2, 3],
      signers: [
        { key: signerKey(bob), weight: 0 },
        { key: signerKey(carol), weight: 2 },
        { key: xdr.SignerKey.signerKeyTypeHashX(new Uint8Array(32)), weight: 5 },
        { key: xdr.SignerKey.signerKeyTypePreAuthTx(new Uint8Array(32)), weight: 5 },
      ],
    })
    fake.accounts.set(address, entry)
    expect(await readAccountAuth(fake.server, address)).toMatchObject({
      signers: [{ key: carol.publicKey(), weight: 2 }],
    })
  })

  const faults: RpcFault[] = ['http-503', 'json-rpc-error', 'hang', 'hang-up', 'headless', 'wrong-entry', 'wrong-type']
  test.each(faults)('treats %s as no response', async (fault) => {
    fake.accounts.set(address, accountEntry(address))
    fake.fault = fault
    const refusal = await readAccountAuth(fake.server, address).catch((thrown: unknown) => thrown)
    expect(refusal).toBeInstanceOf(LedgerError)
    expect(refusal).toMatchObject({ code: 'unavailable', message: 'the ledger cannot be reached' })
    expect((refusal as LedgerError).cause).toBeDefined()
    fake.fault = undefined
    expect(await readAccountAuth(fake.server, address)).toMatchObject({ exists: true })
  })
})

describe('weighSignatures', () => {
  const hash = createHash('sha256').update('a transaction').digest()
  const by = (signer: Keypair, text: Uint8Array = hash) => ({
    hint: signer.signatureHint(),
    signature: signer.sign(text),
  })
  const signers = [
    { key: address, weight: 1 },
    { key: bob.publicKey(), weight: 10 },
  ]

  test('adds up distinct signers, in any order', () => {
    const result = weighSignatures({ hash, signatures: [by(bob), by(alice)], signers })
    expect(result).toEqual({ weight: 11, allValid: true, repeats: 0, signedBy: [bob.publicKey(), address] })
  })

  test('returns weight 0 without signatures', () => {
    expect(weighSignatures({ hash, signatures: [], signers })).toEqual({
      weight: 0,
      allValid: true,
      repeats: 0,
      signedBy: [],
    })
  })

  const bad: [string, ReturnType<typeof by>[], number][] = [
    ['a stranger', [by(alice), by(carol)], 1],
    ['another hash', [by(bob, new Uint8Array(32))], 0],
    ['the hint of another signer', [{ ...by(bob), hint: alice.signatureHint() }], 0],
    ['an empty hint', [{ ...by(bob), hint: new Uint8Array() }], 0],
    ['an empty signature', [{ ...by(bob), signature: new Uint8Array() }], 0],
  ]
  test.each(bad)('treats %s as invalid', (_name, signatures, weight) => {
    expect(weighSignatures({ hash, signatures, signers })).toMatchObject({ allValid: false, weight })
  })

  test('counts each signer once, and counts repeated signatures', () => {
    const signatures = [by(alice), by(alice), by(bob), by(alice)]
    expect(weighSignatures({ hash, signatures, signers })).toMatchObject({ weight: 11, allValid: true, repeats: 2 })
  })

  test('does not count the preimage of a hashX signer', () => {
    const preimage = new Uint8Array(32).fill(7)
    const hint = createHash('sha256').update(preimage).digest().subarray(28)
    expect(weighSignatures({ hash, signatures: [{ hint, signature: preimage }], signers }).allValid).toBe(false)
  })
})
