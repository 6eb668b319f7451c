import { Account, Keypair, Networks, Operation } from '@stellar/stellar-sdk'
import { expect, test } from 'vitest'
import { deriveKeys, openWallet } from '#lib/wallet/keys.ts'
import { addSignature, keypairSigner, type Signer } from '#lib/wallet/signer.ts'
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
