import { Address, type rpc, TransactionBuilder, xdr } from '@stellar/stellar-sdk'
import { readEvents } from '#lib/stellar/events.ts'
import { LedgerError, reachLedger } from '#lib/stellar/ledger-error.ts'
import { readLedgerRange } from '#lib/stellar/ledger-range.ts'
import type { ArchivedEvents, TokenArchive } from '#lib/wallet/archive.ts'
import { decodeCallData, decodePayload } from '#lib/wallet/call-data.ts'
import type { Payload } from '#lib/wallet/encryption.ts'
import { accountFilters, limitsOf } from '#lib/wallet/events.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'
import { closedLedger, fromArchive, fromRpc, readLatestLedger } from './ledger-event.ts'
import type { LedgerEvent } from './payment.ts'
import type { ClosedLedger } from './report.ts'

/** An event of the token. The payload of a call that made or used a delegation is there if a source has it. */
export interface HistoryEvent extends LedgerEvent {
  payload?: Payload | undefined
}

/**
 * Events in ledger order, and the time since which they are complete: undefined if they begin with the registration of
 * the account, or of the token.
 */
export interface History {
  events: HistoryEvent[]
  /** the last ledger that the RPC had */
  through: ClosedLedger
  completeFrom?: string | undefined
}

/** Where a history is read. */
export interface HistorySource {
  rpc: rpc.Server
  token: string
  archives: readonly TokenArchive[]
}

/**
 * Every event of the token that names `account`, or all of them. Old events come from the first archive that has all of
 * them since the registration. If none goes back that far, `completeFrom` says where the events begin.
 * @throws WalletError `archive-unavailable`, or `history-incomplete` if every named archive has gaps; LedgerError `unavailable`
 */
export async function readHistory({ rpc: server, token, archives }: HistorySource, account?: string): Promise<History> {
  const range = await readLedgerRange(server)
  const { floor, seam } = limitsOf(range)
  const filters = tokenFilters(token, account)
  const {
    events: read,
    latestLedger,
    latestLedgerCloseTime,
  } = await reachLedger(readEvents(server, filters, { startLedger: floor }))
  const recent: HistoryEvent[] = read.map(fromRpc)
  const through =
    latestLedgerCloseTime === undefined
      ? await readLatestLedger(server)
      : closedLedger(latestLedger, latestLedgerCloseTime)
  const isYoung = account !== undefined && beginsWithRegistration(recent, account)
  if (isYoung || range.oldestLedger <= 1) return { events: recent, through }
  if (archives.length === 0) return { events: recent, through, completeFrom: await readCloseTime(server, floor) }
  const old = await readOld(archives, account, seam - 1)
  const events = [...old, ...recent.filter(({ ledger }) => ledger >= seam)]
  return beginsWithRegistration(events, account)
    ? { events, through }
    : { events, through, completeFrom: old[0]?.closedAt ?? (await readCloseTime(server, floor)) }
}

/** The events of the token that name an account, or all of them. */
export const tokenFilters = (token: string, account: string | undefined): rpc.Api.EventFilter[] =>
  account === undefined ? [{ type: 'contract', contractIds: [token] }] : accountFilters(token, account)

/** When a ledger closed. If the RPC has dropped it in the meantime, its oldest ledger counts instead. */
async function readCloseTime(server: rpc.Server, ledger: number): Promise<string> {
  const { oldestLedger } = await readLedgerRange(server)
  const startLedger = Math.max(ledger, oldestLedger)
  // The plain fields only: the SDK's classes decode headers, of which a new protocol may have others.
  const { ledgers } = await reachLedger(server._getLedgers({ startLedger, pagination: { limit: 1 } }))
  const [first] = ledgers
  if (!first) throw new LedgerError('unavailable', `the RPC has no ledger ${startLedger}`)
  return new Date(Number(first.ledgerCloseTime) * 1_000).toISOString()
}

/**
 * Whether the events go back to the registration of `account`, or of every account that has paid or merged. An archive
 * that began later lacks some of their events.
 */
function beginsWithRegistration(events: readonly HistoryEvent[], account: string | undefined): boolean {
  const registered = new Set<string | undefined>()
  for (const { topics } of events) {
    const [name = '', subject] = topics
    if (name === REGISTER) registered.add(subject)
    else if (account === undefined && SPENDING.includes(name) && !registered.has(subject)) return false
  }
  return account === undefined
    ? registered.size > 0
    : registered.has(Address.fromString(account).toScVal().toXdr('base64'))
}

/** Base64 XDR of the symbol `register`. */
const REGISTER = 'AAAADwAAAAhyZWdpc3Rlcg=='

/** Base64 XDR of the symbols of the events whose first topic after the name is a registered account. */
const SPENDING = ['transfer', 'merge'].map((name) => xdr.ScVal.scvSymbol(name).toXdr('base64'))

async function readOld(
  archives: readonly TokenArchive[],
  account: string | undefined,
  through: number,
): Promise<HistoryEvent[]> {
  let cut: HistoryEvent[] | undefined
  for (const archive of archives) {
    const { events, complete }: ArchivedEvents =
      account === undefined
        ? await archive.readToken(undefined, through)
        : await archive.readEvents(account, undefined, through)
    if (!complete) continue
    const old = events.map((event) => ({ ...fromArchive(archive, event), payload: payloadOf(event.payload_xdr) }))
    if (beginsWithRegistration(old, account)) return old
    cut ??= old
  }
  if (cut) return cut
  throw new WalletError(
    'history-incomplete',
    `no named archive has all events through ledger ${through}: ${archives.map(({ name }) => name).join(' and ')}`,
  )
}

const payloadOf = (payload: string | undefined): Payload | undefined =>
  payload === undefined ? undefined : decodePayload(xdr.ScVal.fromXdr(payload, 'base64'))

/** Base64 XDR of the symbols of the events whose calls an owner needs. */
const DELEGATED = ['set_spender', 'spender_transfer'].map((name) => xdr.ScVal.scvSymbol(name).toXdr('base64'))

/** How many transactions are read at once. */
const AT_ONCE = 5

/** Reads the missing payloads of delegated calls from the RPC, if it still has their transactions. */
export async function readPayloads(
  { rpc: server, token, passphrase }: Pick<HistorySource, 'rpc' | 'token'> & { passphrase: string },
  events: readonly HistoryEvent[],
): Promise<HistoryEvent[]> {
  const isMissing = ({ payload, topics: [name = ''] }: HistoryEvent) =>
    payload === undefined && DELEGATED.includes(name)
  const missing = [...new Set(events.filter(isMissing).map(({ transaction }) => transaction))]
  const payloads = new Map<string, Payload | undefined>()
  for (let start = 0; start < missing.length; start += AT_ONCE) {
    const read = missing.slice(start, start + AT_ONCE).map(async (transaction) => {
      const found = await reachLedger(server.getTransaction(transaction))
      if (found.status !== 'NOT_FOUND') payloads.set(transaction, payloadIn(found.envelopeXdr, { token, passphrase }))
    })
    await Promise.all(read)
  }
  return events.map((event) => (isMissing(event) ? { ...event, payload: payloads.get(event.transaction) } : event))
}

/**
 * The payload of the one call in an envelope. Undefined if it calls another contract, which may pass other data to the
 * token than it was given.
 */
function payloadIn(
  envelope: xdr.TransactionEnvelope,
  { token, passphrase }: { token: string; passphrase: string },
): Payload | undefined {
  const transaction = TransactionBuilder.fromXdr(envelope.toXdr('base64'), passphrase)
  const [operation] = ('innerTransaction' in transaction ? transaction.innerTransaction : transaction).operations
  if (operation?.type !== 'invokeHostFunction' || operation.func.type !== 'hostFunctionTypeInvokeContract')
    return undefined
  const { contractAddress, args } = operation.func.invokeContract
  if (Address.fromScAddress(contractAddress).toString() !== token) return undefined
  const data = args.at(-1)
  try {
    return data?.type === 'scvBytes' ? decodeCallData(data.bytes.toBytes()).payload : undefined
  } catch (error) {
    if (error instanceof WalletError) return undefined
    throw error
  }
}
