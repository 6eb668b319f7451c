import { createServer, type ServerResponse } from 'node:http'
import { Keypair, rpc, xdr } from '@stellar/stellar-sdk'

/** What the fake RPC does in place of an answer. `headless` is a JSON-RPC result without a ledger number. */
export type RpcFault = 'http-503' | 'json-rpc-error' | 'hang' | 'hang-up' | 'headless' | 'wrong-entry' | 'wrong-type'

export interface FakeRpc {
  url: string
  server: rpc.Server
  /** The accounts of the ledger, by G-address. */
  accounts: Map<string, xdr.AccountEntry>
  fault: RpcFault | undefined
  calls: number
  close(): Promise<void>
}

/** An RPC over HTTP that knows getLedgerEntries for accounts, and can fail in every way that one does. */
export async function startFakeRpc(): Promise<FakeRpc> {
  const listener = createServer(async (request, response) => {
    fake.calls += 1
    let body = ''
    for await (const chunk of request) body += chunk
    const { params } = JSON.parse(body) as { params: { keys: string[] } }
    respond(fake, params.keys, response)
  })
  // Opening PGlite stops this process for seconds: an idle connection must outlast that.
  listener.keepAliveTimeout = 60_000
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  const address = listener.address()
  if (typeof address !== 'object' || !address) throw new Error('not listening')
  const url = `http://127.0.0.1:${address.port}`
  const server = new rpc.Server(url, { allowHttp: true })
  server.httpClient.defaults.timeout = 3_000
  const fake: FakeRpc = {
    url,
    server,
    accounts: new Map(),
    fault: undefined,
    calls: 0,
    close: () =>
      new Promise((resolve) => {
        listener.close(() => resolve())
        listener.closeAllConnections()
      }),
  }
  return fake
}

function respond(fake: FakeRpc, keys: string[], response: ServerResponse): void {
  if (fake.fault === 'hang') return
  if (fake.fault === 'hang-up') response.destroy()
  else if (fake.fault === 'http-503') response.writeHead(503).end('no backend')
  else {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, ...answer(fake, keys) }))
  }
}

function answer(fake: FakeRpc, keys: string[]): object {
  if (fake.fault === 'json-rpc-error') return { error: { code: -32603, message: 'internal error' } }
  if (fake.fault === 'headless') return { result: {} }
  if (fake.fault === 'wrong-entry') {
    const other = Keypair.fromRawEd25519Seed(new Uint8Array(32).fill(99)).publicKey()
    return { result: { latestLedger: 7, entries: [present(other, accountEntry(other))] } }
  }
  if (fake.fault === 'wrong-type') {
    const entry = new xdr.TtlEntry({ keyHash: new Uint8Array(32), liveUntilLedgerSeq: 9 })
    const data = xdr.LedgerEntryData.ttl(entry).toXdr('base64')
    return { result: { latestLedger: 7, entries: [{ key: keys[0], xdr: data, lastModifiedLedgerSeq: 1 }] } }
  }
  const known = [...fake.accounts].map(([account, entry]) => present(account, entry))
  return { result: { latestLedger: 7, entries: known.filter(({ key }) => keys.includes(key)) } }
}

function present(address: string, entry: xdr.AccountEntry) {
  const accountId = Keypair.fromPublicKey(address).xdrAccountId()
  return {
    key: xdr.LedgerKey.account(new xdr.LedgerKeyAccount({ accountId })).toXdr('base64'),
    xdr: xdr.LedgerEntryData.account(entry).toXdr('base64'),
    lastModifiedLedgerSeq: 1,
  }
}

/** The ledger's entry of an account; thresholds are master weight, low, medium, high. */
export function accountEntry(
  address: string,
  given: {
    thresholds?: [number, number, number, number]
    signers?: { key: xdr.SignerKey; weight: number }[]
    sequence?: bigint
  } = {},
): xdr.AccountEntry {
  return new xdr.AccountEntry({
    accountId: Keypair.fromPublicKey(address).xdrAccountId(),
    balance: 10_000_000n,
    seqNum: given.sequence ?? 1n,
    numSubEntries: given.signers?.length ?? 0,
    inflationDest: null,
    flags: 0,
    homeDomain: '',
    thresholds: Uint8Array.from(given.thresholds ?? [1, 0, 0, 0]),
    signers: (given.signers ?? []).map((signer) => new xdr.Signer(signer)),
    ext: xdr.AccountEntryExt.v0(),
  })
}

/** The signer key of a key pair. */
export function signerKey(pair: Keypair): xdr.SignerKey {
  return xdr.SignerKey.signerKeyTypeEd25519(pair.rawPublicKey())
}
