import { Address, type rpc, xdr } from '@stellar/stellar-sdk'
import { ledgerUnreachable } from './ledger-error.ts'

/** The part of the RPC client that this file needs. */
export type EntryReader = Pick<rpc.Server, 'getLedgerEntries'>

/** The maximum number of keys per call (stellar-rpc rejects more with -32602). */
export const MAX_KEYS = 200

/** Requests within this time (ms) share one RPC call. */
const GATHER_MS = 5

/** A call that further requests may still join. */
interface Call {
  keys: Map<string, xdr.LedgerKey>
  response: Promise<Response>
}

interface Response {
  entries: Map<string, rpc.Api.LedgerEntryResult>
  latestLedger: number
}

const gathering = new WeakMap<EntryReader, Call>()

/**
 * Reads the entries under `keys` (at most 200) in the same order, undefined where the ledger has none, and the ledger of the
 * response. Archived entries count: the RPC returns them with their data. Concurrent requests share a call.
 * @throws LedgerError `unavailable`, including for a response without a ledger or with an entry that was not requested
 */
export async function readEntries(
  server: EntryReader,
  keys: readonly xdr.LedgerKey[],
): Promise<{ entries: (rpc.Api.LedgerEntryResult | undefined)[]; latestLedger: number }> {
  const named = keys.map((key) => [key.toXdr('base64'), key] as const)
  // The RPC rejects a request with a duplicate key.
  const { entries, latestLedger } = await joinCall(server, new Map(named))
  return { entries: named.map(([name]) => entries.get(name)), latestLedger }
}

function joinCall(server: EntryReader, keys: Map<string, xdr.LedgerKey>): Promise<Response> {
  const waiting = gathering.get(server)
  const joint = new Map([...(waiting?.keys ?? []), ...keys])
  if (waiting && joint.size <= MAX_KEYS) {
    waiting.keys = joint
    return waiting.response
  }
  const response = new Promise((resolve) => setTimeout(resolve, GATHER_MS)).then(() => {
    if (gathering.get(server) === call) gathering.delete(server)
    return requestEntries(server, call.keys)
  })
  const call: Call = { keys, response }
  gathering.set(server, call)
  return response
}

async function requestEntries(server: EntryReader, keys: ReadonlyMap<string, xdr.LedgerKey>): Promise<Response> {
  const { entries, latestLedger } = await server.getLedgerEntries(...keys.values()).catch((cause: unknown) => {
    throw ledgerUnreachable(cause)
  })
  // The SDK turns a response without entries into an empty one.
  if (!Number.isSafeInteger(latestLedger)) throw ledgerUnreachable(new Error('the RPC response has no ledger'))
  const byKey = new Map(entries.map((entry) => [entry.key.toXdr('base64'), entry]))
  if ([...byKey].some(([name, { val }]) => keys.get(name)?.type !== val.type)) {
    throw ledgerUnreachable(new Error('the RPC returned an entry that was not requested'))
  }
  return { entries: byKey, latestLedger }
}

/** The key of a persistent entry of a contract (C…). */
export function contractKey(contract: string, key: xdr.ScVal): xdr.LedgerKey {
  return xdr.LedgerKey.contractData(
    new xdr.LedgerKeyContractData({
      contract: new Address(contract).toScAddress(),
      key,
      durability: xdr.ContractDataDurability.persistent,
    }),
  )
}

/** Whether the ledger restores an entry only for a transaction that marks it as archived, and fails any other that names it. */
export const isArchived = ({ liveUntilLedgerSeq }: rpc.Api.LedgerEntryResult, latestLedger: number): boolean =>
  liveUntilLedgerSeq !== undefined && liveUntilLedgerSeq < latestLedger

/** The keys, base64, of the entries that a transaction marks as archived (CAP-66), which restores them. */
export function markedAsArchived({ ext, resources }: xdr.SorobanTransactionData): string[] {
  if (ext.type === 'v0') return []
  const { readWrite } = resources.footprint
  return ext.resourceExt.archivedSorobanEntries.flatMap((index) => readWrite[index]?.toXdr('base64') ?? [])
}

/** Whether a call may extend the lifetime of the entry. Its deployer, not a call, extends that of a contract and its code. */
export const isExtendable = (key: xdr.LedgerKey): boolean =>
  key.type === 'contractData' &&
  key.contractData.durability.name === 'persistent' &&
  key.contractData.key.type !== 'scvLedgerKeyContractInstance'
