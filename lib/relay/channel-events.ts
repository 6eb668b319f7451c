import { Address, type rpc, scValToNative, xdr } from '@stellar/stellar-sdk'
import { z } from 'zod'
import { ledgerUnreachable } from '#lib/stellar/ledger-error.ts'
import type { Network } from '#lib/stellar/network.ts'
import type { Fields } from '#lib/wallet/decryption.ts'

/** A transfer that a channel made, as the ledger's events show it. */
export interface TokenEvent {
  /** of the transaction, the outer one under a fee bump: 64 hex digits */
  hash: string
  ledger: number
  /** the account whose balance paid: the channel, or the owner of an escrow */
  from: string
  /** the payee, G… or C… */
  to: string
  /** the encrypted fields by name */
  fields: Fields
}

/** Largest page of getEvents. */
const PAGE = 1_000

const HEALTH = z.object({ oldestLedger: z.number().int(), latestLedger: z.number().int() })

/**
 * The transfers of a channel in ledger order, from the ledger of its last recorded one up to the RPC's latest. Without
 * a recorded one the channel's registration has to be among the events.
 * @throws LedgerError
 */
export async function readTokenEvents(
  relay: EventSource,
  channel: string,
  lastLedger: number | undefined,
): Promise<{ transfers: TokenEvent[]; latestLedger: number } | 'history-too-short'> {
  const { firstLedger } = await readHistory(relay)
  if (lastLedger !== undefined && lastLedger < firstLedger) return 'history-too-short'
  const own = topicOf(channel)
  const { events, latestLedger } = await readPages(relay, lastLedger ?? firstLedger, [
    [symbol('transfer'), own, '*'],
    [symbol('spender_transfer'), own, '*', '*'],
    [symbol('register'), own],
  ])
  const isWhole = lastLedger !== undefined || events.some(({ topic }) => nameOf(topic) === 'register')
  if (!isWhole) return 'history-too-short'
  return { transfers: events.filter(({ topic }) => nameOf(topic) !== 'register').map(decode), latestLedger }
}

/** An RPC looks through this many ledgers in one request: about 14 hours. */
const LOOK_BACK = 10_000

/** The payments of a channel from the escrow of an owner in the last 10,000 ledgers. @throws LedgerError */
export async function readEscrowPayments(relay: EventSource, channel: string, owner: string): Promise<TokenEvent[]> {
  const { firstLedger, latestLedger } = await readHistory(relay)
  const from = Math.max(firstLedger, latestLedger - LOOK_BACK)
  const topics = [symbol('spender_transfer'), topicOf(channel), topicOf(owner), '*']
  return (await readPages(relay, from, [topics])).events.map(decode)
}

/** A token on a network. */
interface EventSource {
  network: Network
  token: string
}

async function readHistory({ network }: EventSource): Promise<{ firstLedger: number; latestLedger: number }> {
  const { oldestLedger, latestLedger } = await network.call('getHealth', {}, HEALTH)
  // The oldest ledger rises while the next request is on its way.
  return { firstLedger: oldestLedger + 2, latestLedger }
}

/** The token's events with these topics, from a ledger up to the RPC's latest. @throws LedgerError */
async function readPages({ network, token }: EventSource, startLedger: number, topics: string[][]) {
  const filters: rpc.Api.EventFilter[] = [{ type: 'contract', contractIds: [token], topics }]
  const events: rpc.Api.EventResponse[] = []
  let from: { startLedger: number } | { cursor: string } = { startLedger }
  for (;;) {
    const page: rpc.Api.GetEventsResponse = await network.server
      .getEvents({ filters, limit: PAGE, ...from })
      .catch((error: unknown) => {
        throw ledgerUnreachable(error)
      })
    events.push(...page.events)
    const isComplete = page.events.length < PAGE && ledgerOf(page.cursor) >= page.latestLedger
    if (isComplete || ('cursor' in from && from.cursor === page.cursor))
      return { events, latestLedger: page.latestLedger }
    from = { cursor: page.cursor }
  }
}

const nameOf = (topics: xdr.ScVal[]): unknown => topics[0] && scValToNative(topics[0])

function decode({ txHash, ledger, topic, value }: rpc.Api.EventResponse): TokenEvent {
  const [, ...addresses] = topic.map((each) => String(scValToNative(each)))
  // transfer has (from, to), spender_transfer (spender, from, to).
  const [from = '', to = ''] = addresses.slice(-2)
  return { hash: txHash, ledger, from, to, fields: scValToNative(value) }
}

/** A cursor is an event id: its first part holds ledger, transaction and operation (SEP-35). */
const ledgerOf = (cursor: string): number => Number(BigInt(cursor.split('-')[0] ?? '0') >> 32n)

const topicOf = (address: string): string => Address.fromString(address).toScVal().toXdr('base64')

const symbol = (text: string): string => xdr.ScVal.scvSymbol(text).toXdr('base64')
