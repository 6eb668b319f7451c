import { Keypair, Networks } from '@stellar/stellar-sdk'
import { expect, test } from 'vitest'
import { openSep43Signer, type Sep43Wallet } from '#lib/sdk/sep43.ts'
import { deriveKeys, openWallet } from '#lib/wallet/keys.ts'

const TOKEN = 'CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC'
const keypair = Keypair.fromRawEd25519Seed(new Uint8Array(32).fill(7))
const address = keypair.publicKey()

/** Answers as Freighter does: with base64, and with an error in place of a rejection. */
const freighter: Sep43Wallet = {
  getAddress: async () => ({ address }),
  signTransaction: async (envelope) => ({ signedTxXdr: `${envelope} signed` }),
  signMessage: async (message) => ({ signedMessage: Buffer.from(keypair.signMessage(message)).toString('base64') }),
}

test('a SEP-43 wallet signs messages and transactions', async () => {
  const signer = await openSep43Signer(freighter, Networks.TESTNET)
  expect((await openWallet(signer, TOKEN)).keys).toEqual(deriveKeys(keypair, TOKEN))
  expect(await signer.signTransaction('AAAA', { networkPassphrase: Networks.TESTNET })).toBe('AAAA signed')
})

test('a wallet that returns the message signature as bytes works as well', async () => {
  const old = { ...freighter, signMessage: async (text: string) => ({ signedMessage: keypair.signMessage(text) }) }
  const signer = await openSep43Signer(old, Networks.TESTNET)
  expect((await openWallet(signer, TOKEN)).keys).toEqual(deriveKeys(keypair, TOKEN))
})

test.each<[string, Partial<Sep43Wallet>, string]>([
  ['resolves with an error', { getAddress: async () => ({ address: '', error: { message: 'locked' } }) }, 'locked'],
  ['rejects with an object', { getAddress: () => Promise.reject({ code: -1, message: 'closed' }) }, 'closed'],
  ['names no account', { getAddress: async () => ({ address: '' }) }, 'names no account'],
])('treats a wallet that %s as one that refuses to sign', async (_, wallet, message) => {
  const opened = openSep43Signer({ ...freighter, ...wallet }, Networks.TESTNET)
  await expect(opened).rejects.toMatchObject({ code: 'signer-refused', message: expect.stringContaining(message) })
})

test('a wallet without a message signature derives no keys', async () => {
  const mute = { ...freighter, signMessage: async () => ({ signedMessage: null }) }
  const signer = await openSep43Signer(mute, Networks.TESTNET)
  await expect(openWallet(signer, TOKEN)).rejects.toMatchObject({ code: 'signature-invalid' })
})
