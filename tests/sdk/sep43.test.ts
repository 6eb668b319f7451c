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

const ENCODINGS: [string, (signature: Uint8Array) => unknown][] = [
  ['hex', (signature) => Buffer.from(signature).toString('hex')],
  ['hex in capitals', (signature) => Buffer.from(signature).toString('hex').toUpperCase()],
  ['base64url', (signature) => Buffer.from(signature).toString('base64url')],
  ['base64 without padding', (signature) => Buffer.from(signature).toString('base64').replace(/=+$/, '')],
  ['base64 with a line feed', (signature) => `${Buffer.from(signature).toString('base64')}\n`],
  ['a Buffer that was JSON', (signature) => JSON.parse(JSON.stringify(Buffer.from(signature)))],
  ['bytes that were JSON', (signature) => JSON.parse(JSON.stringify(signature))],
  ['a list of numbers', (signature) => [...signature]],
  ['base64 of base64', (signature) => Buffer.from(Buffer.from(signature).toString('base64')).toString('base64')],
  ['base64 of hex', (signature) => Buffer.from(Buffer.from(signature).toString('hex')).toString('base64')],
]
test.each(ENCODINGS)('accepts a message signature in %s', async (_, encode) => {
  const wallet = {
    ...freighter,
    signMessage: async (message: string) => ({ signedMessage: encode(keypair.signMessage(message)) as string }),
  }
  const signer = await openSep43Signer(wallet, Networks.TESTNET)
  expect((await openWallet(signer, TOKEN)).keys).toEqual(deriveKeys(keypair, TOKEN))
})

test.each([undefined, null, '', 'User declined', 0, { message: 7 }])(
  'treats a wallet that rejects with %j as one that refuses to sign',
  async (reason) => {
    const wallet = {
      ...freighter,
      signTransaction: () => Promise.reject(reason),
      signMessage: () => Promise.reject(reason),
    }
    const signer = await openSep43Signer(wallet, Networks.TESTNET)
    const refused = { code: 'signer-refused', message: expect.stringMatching(/^the wallet did not sign: ./) }
    await expect(signer.signMessage('text')).rejects.toMatchObject(refused)
    await expect(signer.signTransaction('AAAA', { networkPassphrase: Networks.TESTNET })).rejects.toMatchObject(refused)
  },
)

test.each([undefined, null, 'AAAA', {}, { signedTxXdr: 7 }])(
  'refuses the transaction of a wallet that resolves to %j',
  async (response) => {
    const signTransaction = (async () => response) as unknown as Sep43Wallet['signTransaction']
    const signer = await openSep43Signer({ ...freighter, signTransaction }, Networks.TESTNET)
    const signing = signer.signTransaction('AAAA', { networkPassphrase: Networks.TESTNET })
    await expect(signing).rejects.toMatchObject({ code: expect.stringMatching(/^(signer-refused|signature-invalid)$/) })
  },
)
