import { Asset, contract } from '@stellar/stellar-sdk'
import { beforeAll, expect, test } from 'vitest'
import { enrol, openTestNetwork as openDeployment } from '#lib/cli/client/participants.ts'
import { issuer, keypair, passphrase, shareNetwork } from './network-fixture.ts'

/** The methods of a client generated from a contract's spec, by the names in that spec. */
type Methods<Name extends string> = Record<
  Name,
  (args: Record<string, unknown>) => Promise<contract.AssembledTransaction<unknown>>
>

const holder = keypair('holder')
const friend = keypair('friend')

const network = shareNetwork({ closeMs: 50, now: Date.now })
beforeAll(async () => {
  await network.server.requestAirdrop(holder.publicKey())
  await network.server.requestAirdrop(friend.publicKey())
})

const options = (contractId: string) => ({
  contractId,
  networkPassphrase: passphrase,
  rpcUrl: network.devnet.rpcUrl,
  allowHttp: true,
  publicKey: holder.publicKey(),
  ...contract.basicNodeSigner(holder, passphrase),
})

test('lets Client.from read an asset contract by its built-in spec', async () => {
  const native = Asset.native().contractId(passphrase)
  const client = (await contract.Client.from(options(native))) as contract.Client & Methods<'transfer' | 'balance'>
  const before = await client.balance({ id: friend.publicKey() })
  expect(before.isReadCall).toBe(true)
  const assembled = await client.transfer({ from: holder.publicKey(), to: friend.publicKey(), amount: 5n })
  const sent = await assembled.signAndSend()
  expect(sent.getTransactionResponse?.status).toBe('SUCCESS')
  const after = await client.balance({ id: friend.publicKey() })
  expect(BigInt(String(after.result)) - BigInt(String(before.result))).toBe(5n)
})

test("applies a call with another account's signed authorization", async () => {
  const native = Asset.native().contractId(passphrase)
  const client = (await contract.Client.from(options(native))) as contract.Client & Methods<'transfer'>
  const assembled = await client.transfer({ from: friend.publicKey(), to: holder.publicKey(), amount: 3n })
  expect(assembled.needsNonInvokerSigningBy()).toEqual([friend.publicKey()])
  await assembled.signAuthEntries({
    address: friend.publicKey(),
    ...contract.basicNodeSigner(friend, passphrase),
  })
  const sent = await assembled.signAndSend()
  expect(sent.getTransactionResponse?.status).toBe('SUCCESS')
})

test('lets Client.from read the confidential token by the spec in its code', async () => {
  const deployment = await openDeployment(`${network.devnet.url}/deployment.json`)
  const client = (await contract.Client.from(options(deployment.token))) as contract.Client &
    Methods<'merge' | 'confidential_balance'>
  await expect(
    client.confidential_balance({ account: holder.publicKey() }).then(({ result }) => result),
  ).rejects.toThrow(/Error\(Contract, #3501\)/)
  await enrol(deployment, holder)
  const balance = await client.confidential_balance({ account: holder.publicKey() })
  expect(balance.isReadCall).toBe(true)
  expect(balance.result).toMatchObject({ auditor_id: 0 })
  const merged = await (await client.merge({ account: holder.publicKey() })).signAndSend()
  expect(merged.getTransactionResponse?.status).toBe('SUCCESS')
})

test('emits the asset contract’s events for classic payments of the test USDC', async () => {
  const { contract: id } = network.devnet.deployment.asset
  const client = (await contract.Client.from(options(id))) as contract.Client & Methods<'name' | 'decimals'>
  expect((await client.name({})).result).toBe(`USDC:${issuer.publicKey()}`)
  expect((await client.decimals({})).result).toBe(7)
})
