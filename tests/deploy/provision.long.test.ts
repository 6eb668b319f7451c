import { readFileSync } from 'node:fs'
import { Address, Asset, Keypair, Networks, Operation, rpc, TransactionBuilder, xdr } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { setupServices } from '#lib/cli/setup/services.ts'
import { readEnvironment, VARIABLE_NAMES } from '#lib/config/environment.ts'
import { type Devnet, startDevnet } from '#lib/devnet/devnet.ts'
import type { Provisioning } from '#lib/setup/channels.ts'
import { readDocument } from '#lib/setup/document.ts'
import { readVariables } from '#lib/setup/env-file.ts'
import { provision } from '#lib/setup/provision.ts'
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts'

/** Runs the setup in this process with various deployments, keys and networks. */

let devnet: Devnet
let proxy: FaultProxy
let server: rpc.Server
beforeAll(async () => {
  // Uses testnet's passphrase, so that it can act as testnet.
  devnet = await startDevnet({ directory: null, port: 0, closeMs: 100, passphrase: Networks.TESTNET })
  proxy = await startFaultProxy(devnet.rpcUrl)
  server = new rpc.Server(devnet.rpcUrl, { allowHttp: true })
})
afterAll(async () => {
  await proxy?.close()
  await devnet?.close()
})

interface Change {
  document?: Record<string, unknown>
  contracts?: Record<string, string>
  environment?: Record<string, string>
  envText?: string
  channels?: number
}

/** Runs setup. Resolves to its output and files, even after a failure. */
async function attempt({ document = {}, contracts = {}, environment = {}, envText = '', channels = 0 }: Change = {}) {
  const { deployment } = devnet
  const changed = {
    ...deployment,
    rpcUrl: proxy.url,
    contracts: { ...deployment.contracts, ...contracts },
    ...document,
  }
  const output: string[] = []
  const texts: string[] = []
  const wanted: Provisioning = {
    document: readDocument(JSON.stringify(changed)),
    services: setupServices,
    envText,
    file: 'service.env',
    keys: readEnvironment({ DEVNET_PROOFS: 'stand-in', FAUCET_SEED: devnet.issuerSecret, ...environment }),
    channels,
    keep: (text) => texts.push(text),
    say: (line) => output.push(line),
  }
  const failure = await provision(wanted).then(
    () => undefined,
    (error: unknown) => error,
  )
  return { failure, output: output.join('\n'), texts, variables: readVariables(texts[0] ?? '') }
}

describe('a deployment document that does not match', () => {
  const stranger = Keypair.fromRawEd25519Seed(new Uint8Array(32).fill(7)).publicKey()
  const native = Asset.native().contractId(Networks.TESTNET)
  test.each<[string, () => Change, RegExp]>([
    ['an unknown token', () => ({ contracts: { token: contractOf(1) } }), /the ledger has no contract C/],
    ['another contract as token', () => ({ contracts: { token: native } }), /contracts.token: .*confidential token/],
    [
      'another underlying asset',
      () => ({ contracts: { underlying: native } }),
      /contracts.underlying: the token's own/,
    ],
    ['another verifier', () => ({ contracts: { verifier: contractOf(2) } }), /contracts.verifier: the token's own/],
    ['another registry', () => ({ contracts: { auditor: contractOf(2) } }), /contracts.auditor: the token's own/],
    ['a missing auditor', () => ({ document: { auditor: { id: 9 } } }), /auditor.id: /],
    ['another auditor', () => ({ document: { auditor: { id: 0, key: '0'.repeat(128) } } }), /auditor.key: /],
    ['another issuer', () => ({ document: { asset: { code: 'USDC', issuer: stranger } } }), /asset.issuer: /],
    [
      'another code',
      () => ({ document: { asset: { code: 'EURC', issuer: devnet.deployment.asset.issuer } } }),
      /asset.code: the token's own is USDC/,
    ],
    ['an asset that is XLM', () => ({ document: { asset: { code: 'XLM' } } }), /asset.issuer: /],
  ])('reports %s and creates nothing', async (_, change, problem) => {
    const { failure, texts } = await attempt(change())
    expect(String(failure)).toMatch(problem)
    expect(failure).toHaveProperty('variable', '--deployment')
    expect(texts).toEqual([])
  })

  test('reports an RPC of another network', async () => {
    const other = 'Standalone Network ; February 2017'
    const { failure, texts } = await attempt({ document: { network: 'local', passphrase: other } })
    expect(String(failure)).toContain(`its RPC belongs to another network: "${Networks.TESTNET}"`)
    expect(texts).toEqual([])
  })
})

test('reports a deployment of another interface and continues', async () => {
  const { failure, output } = await attempt({ document: { interface: '0.7.0' } })
  expect(failure).toBeUndefined()
  expect(output).toContain('of version 0.7.0: relays need 0.8.0')
  expect((await attempt()).output).not.toContain('of version')
})

describe('the faucet', () => {
  test('is missing without a key, which is reported, and the rest completes', async () => {
    const { failure, output, variables } = await attempt({ environment: { FAUCET_SEED: '' }, channels: 1 })
    expect(failure).toBeUndefined()
    expect(output).toContain(
      `faucet   none: the token’s asset is USDC:${devnet.deployment.asset.issuer}, and FAUCET_SEED is not`,
    )
    expect(output).toContain('channels are not registered or funded: there is no faucet')
    expect(variables).not.toHaveProperty('FAUCET_SEED')
    expect(variables).not.toHaveProperty('BATCH_ENABLED')
    const [sponsor, channel] = await Promise.all(
      [variables.SPONSOR_SEED, variables.CHANNEL_SEEDS].map((seed) =>
        xlmOf(Keypair.fromSecret(seed ?? '').publicKey()),
      ),
    )
    expect([sponsor, channel]).toEqual([10_000_0000000n, 10_000_0000000n])
  })

  test('cannot use an unrelated key', async () => {
    const { failure, texts } = await attempt({ environment: { FAUCET_SEED: Keypair.random().secret() } })
    expect(String(failure)).toMatch(
      /FAUCET_SEED: is the key of G\w{55}, which cannot deposit: it neither issues USDC:G\w{55} nor holds any/,
    )
    expect(texts).toEqual([])
  })

  test('can be a holder instead of the issuer: the channels get half of its balance', async () => {
    const holder = await makeHolder('3000')
    const { failure, output } = await attempt({ environment: { FAUCET_SEED: holder.secret() }, channels: 1 })
    expect(failure).toBeUndefined()
    expect(output).toContain(`faucet   ${holder.publicKey()}, grants from its balance`)
    expect(output).toContain('has 3000.0000000; each channel gets 1500.0000000')
    expect(output).toMatch(/channel {2}G\w{55}, ready/)
  })

  test('names the account if it holds less than one grant', async () => {
    const { failure } = await attempt({ environment: { FAUCET_SEED: (await makeHolder('1')).secret() } })
    expect(String(failure)).toContain('FAUCET_SEED: its account cannot deposit: ')
  })

  test('gets a separate, funded account for a token over XLM', async () => {
    const native = Asset.native().contractId(Networks.TESTNET)
    proxy.rule(({ method }) =>
      method === 'getLedgerEntries' ? { rewrite: (result) => overXlm(result, native) } : 'pass',
    )
    try {
      const document = { asset: { code: 'XLM', issuer: null, contract: native } }
      const contracts = { underlying: native }
      const first = await attempt({ document, contracts, environment: { FAUCET_SEED: '' } })
      expect(first.failure).toBeUndefined()
      expect(first.output).toMatch(/faucet {3}G\w{55}, grants XLM, funded by friendbot/)
      expect(first.variables.FAUCET_AMOUNT).toBe('100')
      const again = { document, contracts, environment: { FAUCET_SEED: '' }, envText: first.texts[0] ?? '' }
      expect((await attempt(again)).texts).toEqual(first.texts)
    } finally {
      proxy.rule(null)
    }
  })
})

describe('testnet', () => {
  const document = { network: 'testnet' }

  test.each<[string, Record<string, string>]>([
    ['a prover', {}],
    ['circuits, even with a reference string', { PROVER_CRS: './lib/prover/reference-string' }],
  ])('only creates the accounts of its channels without %s', async (_, environment) => {
    const { failure, output, variables } = await attempt({ document, channels: 2, environment })
    expect(failure).toBeUndefined()
    expect(output).toContain(
      'channels are not registered or funded: a real network needs real proofs (PROVER_CIRCUITS)',
    )
    expect(variables).toMatchObject({ STELLAR_NETWORK: 'testnet', FAUCET_SEED: devnet.issuerSecret })
    expect(variables).not.toHaveProperty('DEVNET_PASSPHRASE')
    expect(variables).not.toHaveProperty('BATCH_ENABLED')
  })

  test('uses the configured prover, even in a later run', async () => {
    const first = await attempt({ document, channels: 1 })
    const envText = first.texts[0] ?? ''
    const environment = { RELAY_PROVER: './lib/prover/stand-in.ts' }
    const second = await attempt({ document, channels: 1, envText, environment })
    expect(second.failure).toBeUndefined()
    expect(second.output).toMatch(/channel {2}G\w{55}, ready/)
    expect(second.variables).toMatchObject({ ...first.variables, ...environment, BATCH_ENABLED: 'true' })
    const third = await attempt({ document, channels: 1, envText: second.texts[0] ?? '' })
    expect(third.texts).toEqual(second.texts)
  })
})

test('keeps batch jobs off on a local network with another verifier and no circuits', async () => {
  const isKey = (value: xdr.ScVal) => value.type === 'scvBytes' && value.bytes.value.length === 1_760
  proxy.rule(({ method }) => {
    if (method !== 'simulateTransaction') return 'pass'
    return {
      rewrite: (response) => {
        const [result] = (response.results ?? []) as { auth: string[]; xdr: string }[]
        if (!result || !isKey(xdr.ScVal.fromXdr(result.xdr, 'base64'))) return response
        const key = xdr.ScVal.scvBytes(new Uint8Array(1_760).fill(1))
        return { ...response, results: [{ ...result, xdr: key.toXdr('base64') }] }
      },
    }
  })
  try {
    const { failure, output, variables } = await attempt({ document: { network: 'local' }, channels: 1 })
    expect(failure).toBeUndefined()
    expect(output).toContain(
      'channels are not registered or funded: a real network needs real proofs (PROVER_CIRCUITS)',
    )
    expect(variables).toMatchObject({ STELLAR_NETWORK: 'local' })
    expect(variables).not.toHaveProperty('BATCH_ENABLED')
  } finally {
    proxy.rule(null)
  }
})

test('names DEVNET_PROOFS if the ledger accepts stand-ins and the relay would make real proofs', async () => {
  const change = { document: { network: 'local' }, channels: 1, environment: { DEVNET_PROOFS: 'real' } }
  expect(String((await attempt(change)).failure)).toContain(
    'DEVNET_PROOFS: the ledger accepts stand-in proofs only: set it to stand-in here, too',
  )
})

describe('keys and files', () => {
  test('rejects one key with two roles before it creates anything', async () => {
    const { failure, texts } = await attempt({ environment: { SPONSOR_SEED: devnet.issuerSecret } })
    expect(String(failure)).toContain('FAUCET_SEED: contains a key that SPONSOR_SEED already has')
    expect(texts).toEqual([])
  })

  test('does not change the file of another deployment', async () => {
    const { failure, texts } = await attempt({ envText: `CONFIDENTIAL_TOKEN=${contractOf(1)}\n` })
    expect(String(failure)).toContain('CONFIDENTIAL_TOKEN: has another value in service.env')
    expect(texts).toEqual([])
  })

  test('fills the empty secrets of a copied .env.example in place', async () => {
    const { contracts } = devnet.deployment
    const own: Record<string, string> = {
      STELLAR_NETWORK: 'local',
      STELLAR_RPC_URL: proxy.url,
      CONFIDENTIAL_TOKEN: contracts.token,
      BRIDGE_VAULT_ADDRESS: contracts.token,
      DEVNET_PASSPHRASE: `'${Networks.TESTNET}'`,
      RELAY_PROVER: './lib/prover/stand-in.ts',
      DEVNET_PROOFS: 'stand-in',
    }
    const envText = readFileSync('.env.example', 'utf8').replace(
      /^#([A-Z][A-Z0-9_]*)=(.*)$/gm,
      (_, name: string, value: string) => `${name}=${own[name] ?? value}`,
    )
    const first = await attempt({ document: { network: 'local' }, envText, channels: 2 })
    expect(first.failure).toBeUndefined()
    expect(first.variables.CHANNEL_SEEDS).toMatch(/^S\w{55},S\w{55}$/)
    const [text = ''] = first.texts
    // The same lines about the same variables, and the filled ones are valid.
    const nameIn = (line: string) => line.replace(/^([A-Z][A-Z0-9_]*=).*$/, '$1')
    expect(text.split('\n').map(nameIn)).toEqual(envText.split('\n').map(nameIn))
    const filled = ['SESSION_SECRET', 'SPONSOR_SEED', 'FAUCET_SEED', 'RELAY_PUBLIC_KEY', 'RELAY_PRIVATE_KEY']
    for (const name of filled) expect(first.variables).toHaveProperty(name)
    expect(() => readEnvironment({ ...first.variables, VERCEL: '' })).not.toThrow()
    const second = await attempt({ document: { network: 'local' }, envText: text, channels: 2 })
    expect(second).toMatchObject({ failure: undefined, texts: first.texts })
  })

  test('treats a file with only empty variables as empty', async () => {
    const envText = VARIABLE_NAMES.map((name) => `${name}=\n`).join('')
    const { failure, texts, variables } = await attempt({ envText, channels: 2 })
    expect(failure).toBeUndefined()
    expect(variables.CHANNEL_SEEDS).toMatch(/^S\w{55},S\w{55}$/)
    expect(texts[0]?.split('\n').filter((line) => line.startsWith('SPONSOR_SEED='))).toHaveLength(1)
    expect(texts[0]).not.toContain('#')
  })

  test('names a line that the service would reject', async () => {
    const { failure, texts } = await attempt({ envText: 'SESSION_TTL=forever\n' })
    expect(String(failure)).toContain('SESSION_TTL: ')
    expect(texts).toEqual([])
  })
})

describe('an uncooperative network', () => {
  test('names the account that lacks XLM if there is no friendbot', async () => {
    proxy.rule(({ method }) => (method === 'getNetwork' ? { rewrite: ({ friendbotUrl: _, ...rest }) => rest } : 'pass'))
    const { failure, texts, variables } = await attempt()
    proxy.rule(null)
    const sponsor = Keypair.fromSecret(variables.SPONSOR_SEED ?? '').publicKey()
    expect(String(failure)).toContain(`the network has no friendbot: fund ${sponsor} yourself`)
    expect(texts).toHaveLength(1)
  })

  test('reports that friendbot refused, and keeps the keys for the next run', async () => {
    const refusing = {
      rewrite: (result: Record<string, unknown>) => ({ ...result, friendbotUrl: `${devnet.url}/nowhere` }),
    }
    proxy.rule(({ method }) => (method === 'getNetwork' ? refusing : 'pass'))
    const first = await attempt()
    proxy.rule(null)
    expect(String(first.failure)).toContain('friendbot responded with 404')
    const second = await attempt({ envText: first.texts[0] ?? '' })
    expect(second).toMatchObject({ failure: undefined, texts: first.texts })
  })

  test('reports an unreachable RPC and creates nothing', async () => {
    proxy.rule(() => ({ status: 503 }))
    const { failure, texts } = await attempt()
    proxy.rule(null)
    expect(failure).toMatchObject({ code: 'unavailable' })
    expect(texts).toEqual([])
  })
})

function contractOf(byte: number): string {
  return Address.contract(new Uint8Array(32).fill(byte)).toString()
}

async function xlmOf(address: string): Promise<bigint> {
  return (await server.getAccountEntry(address)).balance
}

/** Creates an account with a trustline to the test USDC and this balance. */
async function makeHolder(amount: string): Promise<Keypair> {
  const issuer = Keypair.fromSecret(devnet.issuerSecret)
  const holder = Keypair.random()
  const asset = new Asset('USDC', issuer.publicKey())
  await server.fundAddress(holder.publicKey(), devnet.friendbotUrl)
  const transaction = new TransactionBuilder(await server.getAccount(holder.publicKey()), {
    fee: '200',
    networkPassphrase: Networks.TESTNET,
  })
    .addOperation(Operation.changeTrust({ asset }))
    .addOperation(Operation.payment({ destination: holder.publicKey(), asset, amount, source: issuer.publicKey() }))
    .setTimeout(60)
    .build()
  transaction.sign(holder, issuer)
  const { hash } = await server.sendTransaction(transaction)
  const { status } = await server.pollTransaction(hash, { attempts: 10_000, sleepStrategy: () => 100 })
  expect(status).toBe('SUCCESS')
  return holder
}

/** A ledger whose token wraps XLM. */
function overXlm(result: Record<string, unknown>, native: string): Record<string, unknown> {
  const entries = (result.entries as { xdr: string }[]).map((entry) => {
    const data = xdr.LedgerEntryData.fromXdr(entry.xdr, 'base64')
    if (data.type !== 'contractData' || data.contractData.val.type !== 'scvContractInstance') return entry
    const storage = data.contractData.val.instance.storage ?? []
    const index = storage.findIndex(({ key }) => key.type === 'scvVec' && isNamed(key.vec?.[0], 'UnderlyingAsset'))
    const setting = storage[index]
    if (setting) storage[index] = new xdr.ScMapEntry({ key: setting.key, val: new Address(native).toScVal() })
    return { ...entry, xdr: data.toXdr('base64') }
  })
  return { ...result, entries }
}

function isNamed(value: xdr.ScVal | undefined, name: string): boolean {
  return value?.type === 'scvSymbol' && value.value === name
}
