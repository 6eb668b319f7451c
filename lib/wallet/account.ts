import type { rpc, xdr } from '@stellar/stellar-sdk'
import {
  type DelegationEntry,
  delegationKey,
  findAccounts,
  readAccountEntry,
  readDelegationEntry,
} from '#lib/stellar/confidential-token.ts'
import { MAX_KEYS, readEntries } from '#lib/stellar/entries.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { decodeKey } from './commitment.ts'
import type { Deployment, TokenOnNetwork } from './deployment.ts'
import { simulateRead } from './transaction.ts'
import { WalletError } from './wallet-error.ts'

/** A registered account. Keys and commitments are points of 64 bytes. */
export interface ConfidentialAccount {
  auditorId: number
  spendingKey: Uint8Array
  viewingKey: Uint8Array
  spendable: Uint8Array
  receiving: Uint8Array
}

/**
 * The confidential accounts of these addresses (G… or C…), by address. Addresses that are not registered are missing.
 * @throws LedgerError `foreign-contract` if the entries are not those of a confidential token
 */
export async function readConfidentialAccounts(
  server: rpc.Server,
  token: string,
  addresses: readonly string[],
): Promise<Map<string, ConfidentialAccount>> {
  const found = await findAccounts(server, token, addresses)
  return new Map([...found].map(([address, data]) => [address, complete(data)]))
}

/** The confidential account of one address, or undefined if it is not registered. */
export async function readConfidentialAccount(
  server: rpc.Server,
  token: string,
  address: string,
): Promise<ConfidentialAccount | undefined> {
  return (await readConfidentialAccounts(server, token, [address])).get(address)
}

/**
 * An auditor's public key (64 bytes) from the registry.
 * @throws WalletError `would-fail` with contract error 3301 for an unknown auditor
 */
export async function readAuditorKey(
  deployment: TokenOnNetwork & Pick<Deployment, 'auditor'>,
  id: number,
): Promise<Uint8Array> {
  const simulation = await simulateRead(deployment, deployment.auditor, 'get_key', id)
  const answer = simulation.result?.retval
  if (answer?.type !== 'scvBytes')
    throw new LedgerError('foreign-contract', 'the auditor registry answers with something else')
  const key = new Uint8Array(answer.bytes.toBytes())
  decodeKey(key)
  return key
}

/**
 * The delegations of these pairs in the same order, undefined where there is none, and the oldest ledger of a response (0 if there
 * are no pairs).
 * @throws LedgerError
 */
export async function readDelegations(
  deployment: TokenOnNetwork,
  pairs: readonly { owner: string; spender: string }[],
): Promise<{ delegations: (DelegationEntry | undefined)[]; latestLedger: number }> {
  const keys = pairs.map((pair) => delegationKey(deployment.token, pair))
  const delegations: (DelegationEntry | undefined)[] = []
  let oldest: number | undefined
  for (let start = 0; start < keys.length; start += MAX_KEYS) {
    const { entries, latestLedger } = await readEntries(deployment.rpc, keys.slice(start, start + MAX_KEYS))
    delegations.push(...entries.map((entry) => entry && readDelegationEntry(entry.val)))
    oldest = Math.min(oldest ?? latestLedger, latestLedger)
  }
  return { delegations, latestLedger: oldest ?? 0 }
}

function complete(data: xdr.LedgerEntryData): ConfidentialAccount {
  const { spendingKey, spendable, receiving, ...account } = readAccountEntry(data)
  if (!spendingKey || !spendable || !receiving) {
    throw new LedgerError(
      'foreign-contract',
      'the configured contract keeps its accounts in a form that this wallet cannot read',
    )
  }
  return { ...account, spendingKey, spendable, receiving }
}

/**
 * An account that takes part in a call, and its auditor's current key. Rotating the key invalidates proofs in flight.
 */
interface Party {
  account: ConfidentialAccount
  auditor: Uint8Array
}

/**
 * Reads the parties of one call, each account and each auditor once.
 * @throws WalletError `not-registered`; errors of the two readings
 */
export async function readParties(
  deployment: Deployment,
  addresses: readonly string[],
): Promise<(address: string) => Party> {
  const accounts = await readConfidentialAccounts(deployment.rpc, deployment.token, addresses)
  const missing = addresses.find((address) => !accounts.has(address))
  if (missing !== undefined) throw new WalletError('not-registered', `${missing} has no confidential account`)
  const auditors = new Map<number, Uint8Array>()
  for (const id of new Set([...accounts.values()].map(({ auditorId }) => auditorId))) {
    auditors.set(id, await readAuditorKey(deployment, id))
  }
  return (address) => {
    const account = accounts.get(address)
    const auditor = account && auditors.get(account.auditorId)
    if (!auditor) throw new Error(`${address} is not a party to this call`)
    return { account, auditor }
  }
}
