import { Address, Asset, Keypair, Operation, xdr } from '@stellar/stellar-sdk'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Fault } from '../support/fault-proxy.ts'
import { openTestService, type TestService } from '../support/test-service.ts'
import { FAUCET, type Faucet, openFaucet, startAnother } from './faucet.ts'

let service: TestService<'embedded'>
let faucet: Faucet
let session: string
let token: string
let underlying: string
let native: string
let usdc: Asset
beforeAll(async () => {
  service = await openTestService(FAUCET)
  faucet = openFaucet(service)
  session = await service.user('anybody')
  token = service.ledger.network.token
  underlying = service.ledger.devnet.deployment.contracts.underlying
  native = Asset.native().contractId(service.ledger.network.passphrase)
  usdc = new Asset('USDC', service.ledger.issuer.publicKey())
})
afterAll(() => service?.close())
afterEach(() => service.ledger.proxy.rule(null))

/** The service's response for a vault at `address`. */
async function readVault(address: string, variables: Record<string, string> = {}) {
  const another = await startAnother(service, { BRIDGE_VAULT_ADDRESS: address, ...variables })
  const answer = await faucet.vault(session, another)
  await another.close()
  return answer
}

async function join(): Promise<Keypair> {
  const keypair = Keypair.random()
  const funded = await fetch(`${service.ledger.network.friendbotUrl}?addr=${keypair.publicKey()}`)
  expect(funded.ok).toBe(true)
  return keypair
}

/** Makes the token's instance name another asset contract, as if the token had been deployed over that. */
const overAsset =
  (contract: string) =>
  ({ method }: { method: string }): Fault =>
    method === 'getLedgerEntries'
      ? { rewrite: (result) => ({ ...result, entries: entriesOver(contract, result) }) }
      : 'pass'

function entriesOver(contract: string, result: Record<string, unknown>): unknown {
  const entries = (result.entries ?? []) as { xdr: string }[]
  return entries.map((entry) => {
    const data = xdr.LedgerEntryData.fromXdr(entry.xdr, 'base64')
    if (data.type !== 'contractData' || data.contractData.val.type !== 'scvContractInstance') return entry
    if (Address.fromScAddress(data.contractData.contract).toString() !== token) return entry
    const { instance } = data.contractData.val
    const storage = (instance.storage ?? []).map(({ key, val }) => {
      const isUnderlying = JSON.stringify(key.toJson()).includes('UnderlyingAsset')
      return new xdr.ScMapEntry({ key, val: isUnderlying ? new Address(contract).toScVal() : val })
    })
    const val = xdr.ScVal.scvContractInstance(new xdr.ScContractInstance({ executable: instance.executable, storage }))
    const changed = new xdr.ContractDataEntry({ ...data.contractData, val })
    return { ...entry, xdr: xdr.LedgerEntryData.contractData(changed).toXdr('base64') }
  })
}

test('defaults to the token’s contract, which has the sum of all confidential balances', async () => {
  expect(await faucet.vault(session)).toEqual({
    status: 200,
    retryAfter: null,
    body: { vault: token, held: '0.0000000' },
  })
  const people = [await faucet.settle(), await faucet.settle()]
  for (const person of people) expect(await faucet.ask(person.session)).toMatchObject({ status: 200 })
  expect((await faucet.vault(session)).body).toEqual({ vault: token, held: '2000.0000000' })
  await faucet.overtake(await faucet.settle())
  expect((await faucet.vault(session)).body).toEqual({ vault: token, held: '2000.0000001' })
})

describe('BRIDGE_VAULT_ADDRESS', () => {
  test('reports zero for a contract without a balance', async () => {
    expect(await readVault(underlying)).toMatchObject({ status: 200, body: { vault: underlying, held: '0.0000000' } })
  })

  test('reports an account’s trustline, zero without one, and an issuer without limit', async () => {
    const keypair = await join()
    const vault = keypair.publicKey()
    const readHeld = async () => (await readVault(vault)).body
    expect(await readHeld()).toEqual({ vault, held: '0.0000000' })
    await faucet.perform(keypair, Operation.changeTrust({ asset: usdc }))
    expect(await readHeld()).toEqual({ vault, held: '0.0000000' })
    await faucet.perform(
      service.ledger.issuer,
      Operation.payment({ destination: vault, asset: usdc, amount: '12.3456789' }),
    )
    expect(await readHeld()).toEqual({ vault, held: '12.3456789' })
    const { body } = await readVault(service.ledger.issuer.publicKey())
    expect(body).toEqual({ vault: service.ledger.issuer.publicKey(), held: '922337203685.4775807' })
  })

  test('reports zero for an account that does not exist', async () => {
    const vault = Keypair.random().publicKey()
    expect(await readVault(vault)).toMatchObject({ status: 200, body: { vault, held: '0.0000000' } })
  })
})

describe('a token over the native asset', () => {
  test('reports an account’s balance in XLM', async () => {
    const vault = (await join()).publicKey()
    service.ledger.proxy.rule(overAsset(native))
    const { balance } = await service.ledger.network.rpc.getAccountEntry(vault)
    expect(balance).toBeGreaterThan(0n)
    const units = balance.toString().padStart(8, '0')
    expect(await readVault(vault)).toMatchObject({
      status: 200,
      body: { vault, held: `${units.slice(0, -7)}.${units.slice(-7)}` },
    })
    const nobody = Keypair.random().publicKey()
    expect((await readVault(nobody)).body).toEqual({ vault: nobody, held: '0.0000000' })
  })

  test('reports a contract’s balance in the asset’s contract', async () => {
    const keypair = await join()
    const parties = [keypair.publicKey(), token].map((address) => new Address(address).toScVal())
    const args = [...parties, xdr.ScVal.scvI128(new xdr.Int128Parts({ hi: 0n, lo: 5_0000001n }))]
    await faucet.perform(keypair, Operation.invokeContractFunction({ contract: native, function: 'transfer', args }))
    service.ledger.proxy.rule(overAsset(native))
    expect((await readVault(token)).body).toEqual({ vault: token, held: '5.0000001' })
  })
})

describe('refusals', () => {
  test('responds 501 with neither vault nor token', async () => {
    expect(await readVault('', { CONFIDENTIAL_TOKEN: '' })).toMatchObject({
      status: 501,
      body: { error: 'no bridge vault is configured', code: 'vault-not-configured' },
    })
  })

  test('responds 501 if the configured token is another contract or missing', async () => {
    const error = 'the configured contract does not name its asset as a confidential token does'
    for (const contract of [underlying, missingAsset()]) {
      expect(await readVault('', { CONFIDENTIAL_TOKEN: contract })).toMatchObject({ status: 501, body: { error } })
    }
  })

  test('responds 501 if the asset is not a Stellar asset', async () => {
    service.ledger.proxy.rule(overAsset(service.ledger.devnet.deployment.contracts.verifier))
    expect(await readVault('')).toMatchObject({
      status: 501,
      body: { error: 'the asset of the confidential token is not a Stellar asset', code: 'not-wired' },
    })
  })

  const outages: [string, Fault][] = [
    ['returns an error', { status: 503 }],
    ['reports that it is busy', { error: { code: -32603, message: 'busy' } }],
    ['hangs up', { drop: true, delivered: false }],
    ['omits the ledger', { answer: { entries: [] } }],
    ['returns another entry', { rewrite: (result) => ({ ...result, entries: [anotherEntry()] }) }],
  ]
  test.each(outages)('responds 503 while the RPC %s, and recovers with it', async (_, fault) => {
    const another = await startAnother(service)
    service.ledger.proxy.rule(({ method }) => (method === 'getLedgerEntries' ? fault : 'pass'))
    expect(await faucet.vault(session, another)).toEqual({
      status: 503,
      retryAfter: '5',
      body: { error: 'the ledger cannot be reached', code: 'unavailable' },
    })
    service.ledger.proxy.rule(null)
    expect(await faucet.vault(session, another)).toMatchObject({ status: 200 })
    await another.close()
  })
})

const missingAsset = () =>
  new Asset('OTHER', service.ledger.issuer.publicKey()).contractId(service.ledger.network.passphrase)

function anotherEntry() {
  const keyHash = new Uint8Array(32)
  return {
    key: xdr.LedgerKey.ttl(new xdr.LedgerKeyTtl({ keyHash })).toXdr('base64'),
    xdr: xdr.LedgerEntryData.ttl(new xdr.TtlEntry({ keyHash, liveUntilLedgerSeq: 9 })).toXdr('base64'),
    lastModifiedLedgerSeq: 1,
  }
}
