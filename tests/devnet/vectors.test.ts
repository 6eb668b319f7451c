import { readFileSync } from 'node:fs'
import { Asset, Contract, Operation, scValToNative, xdr } from '@stellar/stellar-sdk'
import { beforeAll, describe, expect, test } from 'vitest'
import { accountKey } from '#lib/devnet/state/ledger-key.ts'
import * as host from './host-fixture.ts'
import { callTransfer, hashOf, keypair, passphrase, perturb, shareNetwork } from './network-fixture.ts'

/** Requests, the real network's responses, and their source. */
function readVectors<Vector>(name: string): (Vector & { name: string; source: string })[] {
  return JSON.parse(readFileSync(new URL(`vectors/${name}.json`, import.meta.url), 'utf8'))
}

interface AssetCall {
  asset: 'usdc' | 'xlm'
  caller: string
  function: string
  arguments: (string | { i128?: string; u32?: number; bool?: boolean })[]
}

interface AssetVector {
  given?: {
    accounts?: Record<string, { balance: string }>
    lines?: Record<string, { balance: string; limit?: string; flags?: number }>
  }
  call: AssetCall
  /** the call isn't authorized, not even by the transaction's signature */
  unsigned?: boolean
  /** a later call whose result is checked instead */
  then?: AssetCall
  result?: unknown
  error?: string
  writes?: number
}

describe('the Stellar asset contract', () => {
  const people = { ...host, nobody: host.keypair('nobody') } as Record<string, unknown>
  const person = (name: string) => people[name] as ReturnType<typeof host.keypair>

  test.each(readVectors<AssetVector>('asset-contract'))('$name ($source)', (vector) => {
    const network = host.openNetwork()
    for (const [name, { balance }] of Object.entries(vector.given?.accounts ?? {})) {
      host.putAccount(network.state, person(name).publicKey(), { balance: BigInt(balance) })
    }
    for (const [name, { balance, limit, flags }] of Object.entries(vector.given?.lines ?? {})) {
      host.putTrustline(network.state, person(name).publicKey(), BigInt(balance), {
        ...(limit !== undefined && { limit: BigInt(limit) }),
        ...(flags !== undefined && { flags }),
      })
    }
    const requestOf = (call: AssetCall): host.Request => ({
      source: person(call.caller),
      contract: network.contracts[call.asset === 'usdc' ? 'underlying' : 'native'],
      name: call.function,
      args: call.arguments.map((argument) => {
        if (argument === 'vault') return host.c(network.contracts.auditor)
        if (typeof argument === 'string') return host.g(person(argument))
        if (argument.i128 !== undefined) return host.amount(BigInt(argument.i128))
        return argument.u32 === undefined ? xdr.ScVal.scvBool(argument.bool === true) : host.number(argument.u32)
      }),
    })
    const request = requestOf(vector.call)
    const run = vector.unsigned ? host.enforce(network, request) : host.record(network, request)
    expect(host.label(run)).toBe(vector.error ?? '')
    if (!run.ok) return
    if (vector.writes !== undefined) expect(run.footprint.readWrite).toHaveLength(vector.writes)
    if (vector.then) host.apply(network, request)
    const result = vector.then ? host.record(network, requestOf(vector.then)) : run
    const native = result.ok ? scValToNative(result.returnValue) : undefined
    if (vector.result !== undefined) expect(native === null ? null : String(native)).toBe(vector.result)
  })
})

interface RpcVector {
  method: string
  params: unknown
  result?: object
  error?: object
  /** absent fields, or paths to them */
  absent?: string[]
}

interface HttpVector {
  body?: string
  /** size in bytes of a body of spaces */
  fill?: number
  contentType?: string
  status: number
  json?: object
}

describe('the RPC', () => {
  const payer = keypair('payer')
  const network = shareNetwork()
  const pay = (amount: string) => Operation.payment({ destination: payer.publicKey(), asset: Asset.native(), amount })
  let values: Record<string, string>

  beforeAll(async () => {
    await network.createAccounts(payer)
    for (const amount of ['1', '2']) await network.settle(await network.build(payer, pay(amount)))
    const last = await network.build(payer, pay('3'))
    await network.settle(last)
    const setting = (id: xdr.ConfigSettingId) =>
      xdr.LedgerKey.configSetting(new xdr.LedgerKeyConfigSetting({ configSettingId: id })).toXdr('base64')
    const native = Asset.native().contractId(passphrase)
    const own = accountKey(payer.publicKey())
    const ttl = new xdr.LedgerKeyTtl({ keyHash: new Uint8Array(32) })
    values = {
      $payer: own,
      $payerAddress: payer.publicKey(),
      $unpadded: own.replace(/=+$/, ''),
      $ttl: xdr.LedgerKey.ttl(ttl).toXdr('base64'),
      $parallel: setting(xdr.ConfigSettingId.configSettingContractParallelComputeV0),
      $bandwidth: setting(xdr.ConfigSettingId.configSettingContractBandwidthV0),
      $payment: (await network.draft(payer, [pay('1')])).toXdr(),
      $paid: hashOf(last),
      $native: native,
      $call: (await network.draft(payer, [callTransfer(payer, payer, 1n)])).toXdr(),
      $making: (await network.draft(payer, [callTransfer(payer, keypair('newcomer'), 10_000_000n)])).toXdr(),
      $reading: (await network.draft(payer, [new Contract(native).call('name')])).toXdr(),
      $spent: perturb(last, { fee: 101 }, payer).toXdr(),
    }
  })

  const post = async (body: string, contentType = 'application/json') =>
    await fetch(network.devnet.rpcUrl, { method: 'POST', headers: { 'content-type': contentType }, body })
  const filled = (value: unknown) =>
    JSON.parse(JSON.stringify(value), (_, item) => (typeof item === 'string' ? (values[item] ?? item) : item))

  test.each(readVectors<RpcVector>('rpc'))('$method: $name ($source)', async (vector) => {
    const { method, params, result, error, absent = [] } = vector
    const response = await post(JSON.stringify({ jsonrpc: '2.0', id: 7, method, params: filled(params) }))
    const answer = await response.json()
    expect(response.status).toBe(200)
    expect(answer).toMatchObject(filled({ id: 7, ...(result && { result }), ...(error && { error }) }))
    expect('error' in answer).toBe(error !== undefined)
    const isInJson = method !== 'getLatestLedger' && /"json"/.test(JSON.stringify(params))
    if (isInJson) expect(JSON.stringify(answer)).not.toMatch(/Xdr":"[^"]/)
    for (const name of absent) expect(answer.result).not.toHaveProperty(name)
  })

  test.each(readVectors<HttpVector>('http'))('$name ($source)', async ({ body, fill, contentType, status, json }) => {
    const response = await post(body ?? ' '.repeat(fill ?? 0), contentType)
    expect(response.status).toBe(status)
    const text = await response.text()
    if (json) expect(JSON.parse(text)).toMatchObject(json)
  })
})
