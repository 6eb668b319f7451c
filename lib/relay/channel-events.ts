import { Address, type rpc, scValToNative, xdr } from '@stellar/stellar-sdk'
import { readWindow } from '#lib/archive/source.ts'
import { partsOf } from '#lib/db/parts.ts'
import { type Events, readEvents } from '#lib/stellar/events.ts'
import { ledgerUnreachable } from '#lib/stellar/ledger-error.ts'
import type { Network } from '#lib/stellar/network.ts'
import type { EventArchive } from '#lib/wallet/archive.ts'
import { saltOf } from '#lib/wallet/decryption.ts'
import { encodeField } from '#lib/wallet/grumpkin.ts'

/** A transfer that a channel made, as the ledger's events show it. */
export interface TokenEvent {
  /** of the transaction, the outer one under a fee bump: 64 hex digits */
  hash: string
  ledger: number
  /** the channel that signed, G… */
  channel: string
  /** the account whose balance paid: the channel, or the owner of an escrow */
  from: string
  /** the payee, G… or C… */
  to: string
  /** of its proof, which may be marked with its purpose: 32 bytes, or none */
  salt: Uint8Array
}

/** By how many ledgers the RPC's oldest one may rise while the next request is on its way. */
const RISE = 2

/** Events per request. Larger pages would parse for longer than other requests should wait. */
const PAGE = 1_000

/**
 * The transfers of a channel in ledger order, from `sinceLedger`, which includes one of them, up to the RPC's latest.
 * `isWhole`: none is missing. Without `sinceLedger`, the channel's registration has to be among the events.
 * @throws LedgerError
 */
export async function readTokenEvents(source: EventSource, channel: string, sinceLedger: number | undefined) {
  const { oldestLedger, latestLedger: latest } = await readWindow(source.network)
  const firstLedger = oldestLedger + RISE
  if (sinceLedger !== undefined && sinceLedger < firstLedger) {
    return { transfers: [], latestLedger: latest, isWhole: false }
  }
  const topics = [...paymentsOf(channel), [symbol('register'), topicOf(channel)]]
  const { events, latestLedger } = await readPages(source, sinceLedger ?? firstLedger, [topics])
  return { latestLedger, ...findPayments(events, sinceLedger) }
}

/** `readTokenEvents` from an archive, for what the RPC no longer has. @throws WalletError `archive-unavailable`; LedgerError */
export async function readArchivedPayments(
  archive: EventArchive,
  channel: string,
  { sinceLedger, toLedger }: { sinceLedger: number | undefined; toLedger: number },
) {
  const { events, complete } = await archive.readEvents(channel, sinceLedger, toLedger)
  const decoded = events.map(({ tx_hash: txHash, ledger_seq: ledger, topics_xdr, data_xdr }) => ({
    txHash,
    ledger,
    topic: topics_xdr.map((each) => xdr.ScVal.fromXdr(each, 'base64')),
    value: xdr.ScVal.fromXdr(data_xdr, 'base64'),
  }))
  const { transfers, isWhole } = findPayments(decoded, sinceLedger)
  const own = transfers.filter((payment) => payment.channel === channel)
  return { transfers: own, latestLedger: toLedger, isWhole: complete && isWhole }
}

const PAYMENTS: ReadonlySet<string> = new Set(['transfer', 'spender_transfer'])

function findPayments(events: readonly Encoded[], sinceLedger: number | undefined) {
  const isWhole = sinceLedger !== undefined || events.some(({ topic }) => nameOf(topic) === 'register')
  return { transfers: events.filter(({ topic }) => PAYMENTS.has(nameOf(topic))).map(decode), isWhole }
}

/** Filters per request, and channels per filter: an RPC takes five of each, and a channel has two kinds of payments. */
const MAX_FILTERS = 5
const CHANNELS_PER_FILTER = 2

/** The transfers of channels since a ledger, given the latest one, or as far as the RPC's history goes back. @throws LedgerError */
export async function readPaymentsSince(
  source: EventSource,
  channels: readonly string[],
  since: (latestLedger: number) => number,
): Promise<{ payments: TokenEvent[]; latestLedger: number }> {
  const window = await readWindow(source.network)
  const startLedger = Math.max(since(window.latestLedger), window.oldestLedger + RISE)
  const filters = partsOf(channels, CHANNELS_PER_FILTER).map((part) => part.flatMap(paymentsOf))
  let { latestLedger } = window
  const payments: TokenEvent[] = []
  for (const part of partsOf(filters, MAX_FILTERS)) {
    const pages = await readPages(source, startLedger, part)
    payments.push(...pages.events.map(decode))
    latestLedger = Math.min(latestLedger, pages.latestLedger)
  }
  return { payments, latestLedger }
}

/** A token on a network. */
interface EventSource {
  network: Network
  token: string
}

/** The token's events with one of these lists of topics, from a ledger up to the RPC's latest. @throws LedgerError */
function readPages({ network, token }: EventSource, startLedger: number, lists: string[][][]): Promise<Events> {
  const filters = lists.map((topics): rpc.Api.EventFilter => ({ type: 'contract', contractIds: [token], topics }))
  return readEvents(network.server, filters, { startLedger }, PAGE).catch((error: unknown) => {
    throw ledgerUnreachable(error)
  })
}

type Encoded = Pick<rpc.Api.EventResponse, 'txHash' | 'ledger' | 'topic' | 'value'>

const nameOf = ([name]: xdr.ScVal[]): string => (name ? String(scValToNative(name)) : '')

function decode({ txHash, ledger, topic, value }: Encoded): TokenEvent {
  const [, ...addresses] = topic.map((each) => String(scValToNative(each)))
  // transfer has (from, to), spender_transfer (spender, from, to).
  const [channel = ''] = addresses
  const [from = '', to = ''] = addresses.slice(-2)
  return { hash: txHash, ledger, channel, from, to, salt: readSalt(value) }
}

/** Empty if there is none: then the payment has no mark. */
function readSalt(value: xdr.ScVal): Uint8Array {
  try {
    return encodeField(saltOf(scValToNative(value)))
  } catch {
    return new Uint8Array()
  }
}

/** The topics of what a channel pays. */
function paymentsOf(channel: string): string[][] {
  const own = topicOf(channel)
  return [
    [symbol('transfer'), own, '*'],
    [symbol('spender_transfer'), own, '*', '*'],
  ]
}

const topicOf = (address: string): string => Address.fromString(address).toScVal().toXdr('base64')

const symbol = (text: string): string => xdr.ScVal.scvSymbol(text).toXdr('base64')
