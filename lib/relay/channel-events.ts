import { Address, type rpc, scValToNative, xdr } from '@stellar/stellar-sdk'
import { z } from 'zod'
import { ledgerUnreachable } from '#lib/stellar/ledger-error.ts'
import type { Fields } from '#lib/wallet/decryption.ts'
import type { Relay } from './relay.ts'

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

const HEALTH = z.object({ oldestLedger: z.number().int() })

/**
 * The transfers of a channel in ledger order, from the ledger of its last recorded one up to the RPC's latest. Without
 * a recorded one the channel's registration has to be among the events.
 * @throws LedgerError
 */
export async function readTokenEvents(
  { network, token }: Pick<Relay, 'network' | 'token'>,
  channel: string,
  lastLedger: number | undefined,
): Promise<{ transfers: TokenEvent[]; latestLedger: number } | 'history-too-short'> {
  const { oldestLedger } = await network.call('getHealth', {}, HEALTH)
  // The oldest ledger rises while the next request is on its way.
  const firstLedger = oldestLedger + 2
  if (lastLedger !== undefined && lastLedger < firstLedger) return 'history-too-short'
  const own = Address.fromString(channel).toScVal().toXdr('base64')
  const topics = [
    [symbol('transfer'), own, '*'],
    [symbol('spender_transfer'), own, '*', '*'],
    [symbol('register'), own],
  ]
  const filters: rpc.Api.EventFilter[] = [{ type: 'contract', contractIds: [token], topics }]
  const events: rpc.Api.EventResponse[] = []
  let from: { startLedger: number } | { cursor: string } = { startLedger: lastLedger ?? firstLedger }
  for (;;) {
    const page: rpc.Api.GetEventsResponse = await network.server
      .getEvents({ filters, limit: PAGE, ...from })
      .catch((error: unknown) => {
        throw ledgerUnreachable(error)
      })
    events.push(...page.events)
    const isComplete = page.events.length < PAGE && ledgerOf(page.cursor) >= page.latestLedger
    if (isComplete || ('cursor' in from && from.cursor === page.cursor)) {
      const isWhole = lastLedger !== undefined || events.some(({ topic }) => nameOf(topic) === 'register')
      if (!isWhole) return 'history-too-short'
      const transfers = events.filter(({ topic }) => nameOf(topic) !== 'register').map(decode)
      return { transfers, latestLedger: page.latestLedger }
    }
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

const symbol = (text: string): string => xdr.ScVal.scvSymbol(text).toXdr('base64')
