import type { ServerResponse } from 'node:http'
import { Keypair, rpc, StrKey, xdr } from '@stellar/stellar-sdk'
import { accountKey } from '#lib/stellar/confidential-token.ts'
import { readBody, serveLocally } from './local-server.ts'

/** A fault of the fake RPC. `headless` is a JSON-RPC result without a ledger number. */
export type RpcFault = 'http-503' | 'json-rpc-error' | 'hang' | 'hang-up' | 'headless' | 'wrong-entry' | 'wrong-type'

/** An RPC over HTTP that serves the test's data and can fail in every way. */
export interface FakeRpc {
  url: string
  server: rpc.Server
  passphrase: string
  latestLedger: number
  /** when the latest ledger closed, in unix seconds */
  closedAt: number
  /** whether it is stellar-rpc before 27.1, whose getHealth has no close time */
  isBefore27: boolean
  /** whether the network stands still: getHealth is an error after 30 seconds without a ledger */
  isStale: boolean
  /** the accounts of the ledger, by G-address */
  accounts: Map<string, xdr.AccountEntry>
  /** Registers the address with `token` and this viewing key (128 hex digits). */
  register(address: string, pvk: string, liveUntilLedger?: number): void
  /** Stores an entry of another shape instead of the account. */
  confuse(address: string): void
  /** the fault of every call, or of those of a method; getNetwork never fails */
  fault: RpcFault | ((method: string) => RpcFault | undefined) | undefined
  /** replaces every result if set */
  result: unknown
  /** the calls so far, except getNetwork; tests may reset it */
  calls: number
  /** the called methods, in order */
  methods: string[]
  /** the number of keys of each getLedgerEntries, in order */
  requests: number[]
  close(): Promise<void>
}

interface KnownEntry {
  key: string
  xdr: string
  lastModifiedLedgerSeq: number
  liveUntilLedgerSeq?: number
}

/** The token contract of `register`. */
export const TOKEN = StrKey.encodeContract(new Uint8Array(32).fill(7))

export async function startFakeRpc(options: { latestLedger?: number; passphrase?: string } = {}): Promise<FakeRpc> {
  const registered = new Map<string, KnownEntry>()
  const listening = await serveLocally(async (request, response) => {
    const { id, method, params } = JSON.parse(String(await readBody(request))) as JsonRpcRequest
    fake.methods.push(method)
    const isNetwork = method === 'getNetwork'
    if (!isNetwork) fake.calls += 1
    if (method === 'getLedgerEntries') fake.requests.push(params?.keys?.length ?? 0)
    const fault = typeof fake.fault === 'function' ? fake.fault(method) : fake.fault
    if (fault && !isNetwork) return fail(response, fault, params?.keys ?? [])
    reply(response, id, answer(fake, registered, { method, params }))
  })
  const server = new rpc.Server(listening.url, { allowHttp: true })
  // Ends requests that a test leaves without a response.
  server.httpClient.defaults.timeout = 10_000
  const keep = (address: string, fields: [string, xdr.ScVal][], liveUntilLedgerSeq: number) => {
    const entry = contractEntry(address, fields, liveUntilLedgerSeq)
    registered.set(entry.key, entry)
  }
  const fake: FakeRpc = {
    url: listening.url,
    server,
    passphrase: 'Standalone Network ; February 2017',
    latestLedger: 7,
    closedAt: 0,
    isBefore27: false,
    isStale: false,
    ...options,
    accounts: new Map(),
    fault: undefined,
    result: undefined,
    calls: 0,
    methods: [],
    requests: [],
    register: (address, pvk, liveUntilLedger = fake.latestLedger + 120_960) =>
      keep(
        address,
        [
          ['auditor_id', xdr.ScVal.scvU32(0)],
          ['receiving_commitment', xdr.ScVal.scvBytes(new Uint8Array(64))],
          ['spendable_commitment', xdr.ScVal.scvBytes(new Uint8Array(64))],
          ['spending_public_key', xdr.ScVal.scvBytes(new Uint8Array(64).fill(3))],
          ['viewing_public_key', xdr.ScVal.scvBytes(Buffer.from(pvk, 'hex'))],
        ],
        liveUntilLedger,
      ),
    confuse: (address) => keep(address, [['balance', xdr.ScVal.scvU32(1)]], fake.latestLedger + 120_960),
    close: listening.close,
  }
  return fake
}

interface JsonRpcRequest {
  id: number
  method: string
  params?: { keys?: string[] }
}

function reply(response: ServerResponse, id: number, answer: object): void {
  response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
}

function fail(response: ServerResponse, fault: RpcFault, keys: string[]): unknown {
  if (fault === 'hang') return
  if (fault === 'hang-up') return response.destroy()
  if (fault === 'http-503') return response.writeHead(503).end('no backend')
  if (fault === 'json-rpc-error') return reply(response, 1, { error: { code: -32603, message: 'internal error' } })
  if (fault === 'headless') return reply(response, 1, { result: {} })
  const other = Keypair.fromRawEd25519Seed(new Uint8Array(32).fill(99)).publicKey()
  const ttl = new xdr.TtlEntry({ keyHash: new Uint8Array(32), liveUntilLedgerSeq: 9 })
  const wrong =
    fault === 'wrong-entry'
      ? presentAccount(other, accountEntry(other))
      : { key: keys[0], xdr: xdr.LedgerEntryData.ttl(ttl).toXdr('base64'), lastModifiedLedgerSeq: 1 }
  reply(response, 1, { result: { latestLedger: 7, entries: [wrong] } })
}

function answer(
  fake: FakeRpc,
  registered: ReadonlyMap<string, KnownEntry>,
  { method, params }: Omit<JsonRpcRequest, 'id'>,
): object {
  const { latestLedger, passphrase } = fake
  if (method === 'getNetwork') return { result: { passphrase, protocolVersion: 23 } }
  if (fake.result !== undefined) return { result: fake.result }
  if (method === 'getHealth') {
    // RPCs return the close time as a number since protocol 23, and returned a string before.
    const latestLedgerCloseTime = String(fake.closedAt)
    if (fake.isStale) return { error: { code: -32603, message: 'latency since last known ledger closed is too high' } }
    const range = { latestLedger, oldestLedger: 1, ...(!fake.isBefore27 && { latestLedgerCloseTime }) }
    return { result: { status: 'healthy', ...range } }
  }
  if (method === 'getTransaction') {
    return {
      result: { status: 'NOT_FOUND', latestLedger, latestLedgerCloseTime: String(fake.closedAt), oldestLedger: 1 },
    }
  }
  if (method !== 'getLedgerEntries') return { error: { code: -32601, message: 'no such method' } }
  const keys = params?.keys ?? []
  if (keys.length > 200) {
    return { error: { code: -32602, message: `key count (${keys.length}) exceeds maximum supported (200)` } }
  }
  const accounts = new Map(
    [...fake.accounts].map((account) => [presentAccount(...account).key, presentAccount(...account)]),
  )
  // Always in a different order than requested, so that a caller that relies on the order gets the wrong keys.
  const entries = keys.flatMap((key) => registered.get(key) ?? accounts.get(key) ?? []).reverse()
  return { result: { latestLedger, entries } }
}

export function presentAccount(address: string, entry: xdr.AccountEntry): KnownEntry {
  const accountId = Keypair.fromPublicKey(address).xdrAccountId()
  return {
    key: xdr.LedgerKey.account(new xdr.LedgerKeyAccount({ accountId })).toXdr('base64'),
    xdr: xdr.LedgerEntryData.account(entry).toXdr('base64'),
    lastModifiedLedgerSeq: 1,
  }
}

function contractEntry(address: string, fields: [string, xdr.ScVal][], liveUntilLedgerSeq: number): KnownEntry {
  const key = accountKey(TOKEN, address)
  if (key.type !== 'contractData') throw new Error('no key of contract data')
  const data = new xdr.ContractDataEntry({
    ext: xdr.ExtensionPoint.v0(),
    contract: key.value.contract,
    key: key.value.key,
    durability: key.value.durability,
    val: xdr.ScVal.scvMap(fields.map(([name, val]) => new xdr.ScMapEntry({ key: xdr.ScVal.scvSymbol(name), val }))),
  })
  const value = xdr.LedgerEntryData.contractData(data).toXdr('base64')
  return { key: key.toXdr('base64'), xdr: value, lastModifiedLedgerSeq: 5, liveUntilLedgerSeq }
}

/** The ledger entry of an account; thresholds are master weight, low, medium, high. */
export function accountEntry(
  address: string,
  fields: {
    thresholds?: [number, number, number, number]
    signers?: { key: xdr.SignerKey; weight: number }[]
    sequence?: bigint
    balance?: bigint
  } = {},
): xdr.AccountEntry {
  return new xdr.AccountEntry({
    accountId: Keypair.fromPublicKey(address).xdrAccountId(),
    balance: fields.balance ?? 10_000_000n,
    seqNum: fields.sequence ?? 1n,
    numSubEntries: fields.signers?.length ?? 0,
    inflationDest: null,
    flags: 0,
    homeDomain: '',
    thresholds: Uint8Array.from(fields.thresholds ?? [1, 0, 0, 0]),
    signers: (fields.signers ?? []).map((signer) => new xdr.Signer(signer)),
    ext: xdr.AccountEntryExt.v0(),
  })
}

/** The signer key of a key pair. */
export function signerKey(pair: Keypair): xdr.SignerKey {
  return xdr.SignerKey.signerKeyTypeEd25519(pair.rawPublicKey())
}
