import { createServer } from 'node:http'
import { Keypair, StrKey, xdr } from '@stellar/stellar-sdk'
import { accountKey } from '#lib/stellar/confidential-token.ts'

/** The token contract that the recorded entries belong to. */
export const TOKEN = StrKey.encodeContract(new Uint8Array(32).fill(7))

export const LATEST_LEDGER = 1_000_000

export interface RecordedRpc {
  url: string
  /** how many addresses each getLedgerEntries request asked for, in order */
  requests: number[]
  isDown: boolean
  /** answered to everything, if it is set */
  result: unknown
  /** The address is registered, with this viewing key (128 hex digits). */
  register(address: string, pvk: string, liveUntilLedgerSeq?: number): void
  /** There is an entry, as some other contract would keep it. */
  confuse(address: string): void
  close(): Promise<void>
}

/** An RPC over HTTP that answers getLedgerEntries from what it has been given. */
export async function startRecordedRpc(): Promise<RecordedRpc> {
  const entries = new Map<
    string,
    { key: string; xdr: string; lastModifiedLedgerSeq: number; liveUntilLedgerSeq: number }
  >()
  const listener = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const { id, method, params } = JSON.parse(body) as { id: number; method: string; params: { keys: string[] } }
    if (method === 'getNetwork') {
      const result = { passphrase: 'Standalone Network ; February 2017' }
      return void response.end(JSON.stringify({ jsonrpc: '2.0', id, result }))
    }
    rpc.requests.push(params.keys.length)
    if (rpc.isDown) return void response.writeHead(503).end()
    if (params.keys.length > 200) {
      const error = { code: -32602, message: 'key count (201) exceeds maximum supported (200)' }
      return void response.end(JSON.stringify({ jsonrpc: '2.0', id, error }))
    }
    // In any order but that of the request: whoever counts on it gets the wrong keys.
    const found = params.keys.flatMap((key) => entries.get(key) ?? []).reverse()
    const result = rpc.result ?? { entries: found, latestLedger: LATEST_LEDGER }
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  const bound = listener.address()
  if (typeof bound !== 'object' || !bound) throw new Error('not listening')
  const record = (address: string, fields: [string, xdr.ScVal][], liveUntilLedgerSeq: number) => {
    const key = accountKey(TOKEN, address)
    if (key.type !== 'contractData') throw new Error('no key of contract data')
    const data = new xdr.ContractDataEntry({
      ext: xdr.ExtensionPoint.v0(),
      contract: key.value.contract,
      key: key.value.key,
      durability: key.value.durability,
      val: xdr.ScVal.scvMap(fields.map(([name, val]) => new xdr.ScMapEntry({ key: xdr.ScVal.scvSymbol(name), val }))),
    })
    const named = key.toXdr('base64')
    entries.set(named, {
      key: named,
      xdr: xdr.LedgerEntryData.contractData(data).toXdr('base64'),
      lastModifiedLedgerSeq: 5,
      liveUntilLedgerSeq,
    })
  }
  const rpc: RecordedRpc = {
    url: `http://127.0.0.1:${bound.port}`,
    requests: [],
    isDown: false,
    result: undefined,
    register: (address, pvk, liveUntilLedgerSeq = LATEST_LEDGER + 120_960) =>
      record(
        address,
        [
          ['auditor_id', xdr.ScVal.scvU32(0)],
          ['receiving_commitment', xdr.ScVal.scvBytes(new Uint8Array(64))],
          ['spendable_commitment', xdr.ScVal.scvBytes(new Uint8Array(64))],
          ['spending_public_key', xdr.ScVal.scvBytes(new Uint8Array(64).fill(3))],
          ['viewing_public_key', xdr.ScVal.scvBytes(Buffer.from(pvk, 'hex'))],
        ],
        liveUntilLedgerSeq,
      ),
    confuse: (address) => record(address, [['balance', xdr.ScVal.scvU32(1)]], LATEST_LEDGER + 120_960),
    close: () =>
      new Promise((resolve) => {
        listener.close(() => resolve())
        listener.closeAllConnections()
      }),
  }
  return rpc
}

/** An account of the test's own, the same in every run. */
export function accountOf(number: number): string {
  const seed = new Uint8Array(32)
  new DataView(seed.buffer).setUint32(0, number)
  return Keypair.fromRawEd25519Seed(seed).publicKey()
}

/** 128 hex digits that differ for every number. */
export const keyOf = (number: number): string => number.toString(16).padStart(128, '0')
