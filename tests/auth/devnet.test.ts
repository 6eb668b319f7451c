import { type Keypair, Operation, rpc, TransactionBuilder } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { signInWithWallet } from '#lib/auth/sep10/sign-in.ts'
import { openStore } from '#lib/db/connection.ts'
import { type Devnet, startDevnet } from '#lib/devnet/devnet.ts'
import { readAccountAuth } from '#lib/stellar/account.ts'
import { openNetwork } from '#lib/stellar/network.ts'
import { pair, sep10, sessions, signedChallenge } from './challenges.ts'

const [alice, bob, carol, dave] = [pair('alice'), pair('bob'), pair('carol'), pair('dave')]
const address = alice.publicKey()
const store = openStore({ directory: null })
let devnet: Devnet
let server: rpc.Server

beforeAll(async () => {
  devnet = await startDevnet({ directory: null, port: 0, closeMs: 100, passphrase: sep10.networkPassphrase })
  const passphrase = sep10.networkPassphrase
  server = openNetwork({ name: 'local', passphrase, rpcUrl: devnet.rpcUrl, pollMs: 100 }).server
  expect((await fetch(`${devnet.friendbotUrl}?addr=${address}`)).status).toBe(200)
})
afterAll(async () => {
  await devnet.close()
  await store.close()
})

const signIn = async (account: string, ...signers: Keypair[]) => {
  const now = new Date()
  const transaction = signedChallenge(account, signers, now)
  return await signInWithWallet({ database: store.database, rpc: server, sep10, sessions }, transaction, now)
}
const refused = (reason: string) => ({ code: 'challenge-invalid', message: expect.stringContaining(reason) })

async function setOptions(signers: Keypair[], ...options: Parameters<typeof Operation.setOptions>[0][]): Promise<void> {
  const builder = new TransactionBuilder(await server.getAccount(address), {
    fee: '1000',
    networkPassphrase: sep10.networkPassphrase,
  })
  for (const option of options) builder.addOperation(Operation.setOptions(option))
  const transaction = builder.setTimeout(60).build()
  transaction.sign(...signers)
  const { hash } = await server.sendTransaction(transaction)
  const { status } = await server.pollTransaction(hash, { attempts: 10_000, sleepStrategy: () => 50 })
  expect(status).toBe(rpc.Api.GetTransactionStatus.SUCCESS)
}

test('applies changes to the account’s signers on the ledger', async () => {
  expect(await readAccountAuth(server, dave.publicKey())).toEqual({ exists: false })
  expect(await signIn(dave.publicKey(), dave)).toMatchObject({ sub: dave.publicKey() })

  expect(await signIn(address, alice)).toMatchObject({ kind: 'ledger', sub: address })
  await expect(signIn(address, bob)).rejects.toMatchObject(refused('not by a signer'))

  await setOptions(
    [alice],
    { signer: { ed25519PublicKey: bob.publicKey(), weight: 1 } },
    { signer: { ed25519PublicKey: carol.publicKey(), weight: 1 } },
    { lowThreshold: 1, medThreshold: 2, highThreshold: 2 },
  )
  await expect(signIn(address, alice)).rejects.toMatchObject(refused('have weight 1, but the account requires 2'))
  await expect(signIn(address, alice, dave)).rejects.toMatchObject(refused('not by a signer'))
  expect(await signIn(address, alice, bob)).toMatchObject({ sub: address })
  expect(await signIn(address, bob, carol)).toMatchObject({ sub: address })

  await setOptions([alice, bob], { masterWeight: 0 })
  await expect(signIn(address, alice, bob)).rejects.toMatchObject(refused('not by a signer'))
  expect(await signIn(address, carol, bob)).toMatchObject({ sub: address })
})

test('signs no one in while the ledger is down', async () => {
  await devnet.close()
  await expect(signIn(address, alice)).rejects.toMatchObject({ code: 'unavailable' })
  await expect(signIn(dave.publicKey(), dave)).rejects.toMatchObject({ code: 'unavailable' })
})
