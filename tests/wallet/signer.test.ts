import { ed25519 } from '@noble/curves/ed25519.js'
import { bytesToNumberLE, numberToBytesLE } from '@noble/curves/utils.js'
import { sha256, sha512 } from '@noble/hashes/sha2.js'
import { concatBytes, utf8ToBytes } from '@noble/hashes/utils.js'
import { Account, Keypair, Networks, Operation } from '@stellar/stellar-sdk'
import { expect, test } from 'vitest'
import { buildRegister } from '#lib/wallet/calls.ts'
import type { Deployment } from '#lib/wallet/deployment.ts'
import { deriveKeys, openWallet } from '#lib/wallet/keys.ts'
import type { Prover } from '#lib/wallet/prover.ts'
import { addSignature, keypairSigner, type Signer, signerOf } from '#lib/wallet/signer.ts'
import { buildCall } from '#lib/wallet/transaction.ts'

const TOKEN = 'CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC'
const keypair = Keypair.fromRawEd25519Seed(new Uint8Array(32).fill(7))
const stranger = keypairSigner(Keypair.fromRawEd25519Seed(new Uint8Array(32).fill(8)))
const own = keypairSigner(keypair)

function transaction(sequence = '1') {
  const network = { rpc: undefined as never, passphrase: Networks.TESTNET, token: TOKEN, now: () => 0 }
  return buildCall(network, new Account(keypair.publicKey(), sequence), Operation.bumpSequence({ bumpTo: '5' }), {})
}

test('a wallet’s signature derives the same keys as the secret key', async () => {
  const { address, keys } = await openWallet(own, TOKEN)
  expect(address).toBe(keypair.publicKey())
  expect(keys).toEqual(deriveKeys(keypair, TOKEN))
})

test('no keys are derived from the signature of another account', async () => {
  const confused: Signer = { ...own, signMessage: stranger.signMessage }
  await expect(openWallet(confused, TOKEN)).rejects.toMatchObject({ code: 'signature-invalid' })
})

/** Signs as a threshold signer does: with a new nonce each time. Its signatures verify like any other. */
function thresholdSigner(): Signer {
  const { scalar, pointBytes } = ed25519.utils.getExtendedPublicKey(keypair.rawSecretKey())
  const { Fn, BASE } = ed25519.Point
  let nonce = 1_000n
  const signMessage = async (message: string) => {
    nonce += 1n
    const commitment = BASE.multiply(nonce).toBytes()
    const signed = sha256(utf8ToBytes(`Stellar Signed Message:\n${message}`))
    const challenge = Fn.create(bytesToNumberLE(sha512(concatBytes(commitment, pointBytes, signed))))
    return concatBytes(commitment, numberToBytesLE(Fn.create(nonce + challenge * scalar), 32))
  }
  return { ...own, signMessage }
}

test('registers no keys that the signer does not derive again', async () => {
  const prover: Prover = {
    prove: async () => {
      throw new Error('proved')
    },
  }
  const rpc = { getLedgerEntries: () => Promise.reject(new Error('asked')) } as unknown as Deployment['rpc']
  const deployment = { rpc, passphrase: Networks.TESTNET, token: TOKEN, auditor: TOKEN, prover }
  const register = async (signer: Keypair | Signer) =>
    await buildRegister(deployment, { ...(await openWallet(signerOf(signer), TOKEN)), signer }, { auditorId: 0 })
  await expect(register(thresholdSigner())).rejects.toMatchObject({
    code: 'signer-not-deterministic',
    message: expect.stringContaining(`the signer of ${own.address} did not derive the same keys again`),
  })
  for (const signer of [own, keypair])
    await expect(register(signer)).rejects.toMatchObject({ cause: { message: 'asked' } })
})

test('adds the signature of a wallet, and of a key', async () => {
  const byWallet = await addSignature(transaction(), own)
  const byKey = await addSignature(transaction(), keypair)
  expect(byWallet.toXdr()).toBe(byKey.toXdr())
})

test.each<[string, Signer['signTransaction']]>([
  ['has no signature of G', async (envelope) => envelope],
  ['has no signature of G', stranger.signTransaction],
  ['is another one', (_, options) => own.signTransaction(transaction('2').toXdr(), options)],
])('rejects a transaction that %s…', async (reason, signTransaction) => {
  const result = addSignature(transaction(), { ...own, signTransaction })
  await expect(result).rejects.toMatchObject({ code: 'signature-invalid', message: expect.stringContaining(reason) })
})
