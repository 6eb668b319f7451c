import { type rpc, scValToNative, xdr } from '@stellar/stellar-sdk'
import type { Fields } from './decryption.ts'
import type { Deployment } from './deployment.ts'
import { scAddress } from './spending.ts'

/** One event of the token that concerns an account: name and addresses from its topics, the rest by field name. */
export interface AccountEvent {
  name: string
  addresses: string[]
  fields: Fields
  /** Hex hash of the transaction, the outer one under a fee bump. */
  transaction: string
}

/** Largest page of getEvents (stellar-rpc's limit). */
const PAGE = 10_000

/**
 * The token's events that concern an account, in ledger order, up to the present, and the cursor to go on from.
 * Starts after `since`, a cursor, by default with the oldest ledger that the RPC keeps.
 */
export async function readAccountEvents(
  deployment: Deployment,
  address: string,
  since?: string,
): Promise<{ events: AccountEvent[]; cursor: string }> {
  const filters = filtersFor(deployment.token, address)
  const events: AccountEvent[] = []
  let from = since === undefined ? { startLedger: await oldestLedger(deployment.rpc) } : { cursor: since }
  for (;;) {
    const page = await deployment.rpc.getEvents({ filters, limit: PAGE, ...from })
    events.push(...page.events.map(decodeEvent))
    // A page that is not full may still end early: one request scans a limited number of ledgers.
    const complete = page.events.length < PAGE && ledgerOf(page.cursor) >= page.latestLedger
    if (complete || ('cursor' in from && from.cursor === page.cursor)) return { events, cursor: page.cursor }
    from = { cursor: page.cursor }
  }
}

/** At most five topic lists fit into a filter; filters and lists are alternatives. */
function filtersFor(token: string, address: string): rpc.Api.EventFilter[] {
  const own = scAddress(address).toXdr('base64')
  const outgoing = [
    [symbol('register'), own],
    [symbol('merge'), own],
    [symbol('transfer'), own, '*'],
    [symbol('withdraw'), own, '*'],
    [symbol('set_spender'), own, '*'],
  ]
  const incoming = [
    [symbol('deposit'), '*', own],
    [symbol('transfer'), '*', own],
    [symbol('spender_transfer'), '*', '*', own],
  ]
  const folded = [
    [symbol('revoke_spender'), own, '*'],
    [symbol('clawback'), own],
  ]
  return [outgoing, incoming, folded].map((topics) => ({ type: 'contract', contractIds: [token], topics }))
}

function decodeEvent(event: rpc.Api.EventResponse): AccountEvent {
  const [name, ...addresses] = event.topic.map((topic): unknown => scValToNative(topic))
  const value: unknown = scValToNative(event.value)
  return {
    name: String(name),
    addresses: addresses.map(String),
    fields: typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value)) : {},
    transaction: event.txHash,
  }
}

/** The floor rises with every ledger, and a start below it is an error: stay a little above. */
async function oldestLedger(server: rpc.Server): Promise<number> {
  const { oldestLedger: oldest, latestLedger } = await server.getHealth()
  return Math.min(oldest + 2, latestLedger)
}

/** A cursor is an event id: its first part holds ledger, transaction and operation (SEP-35). */
const ledgerOf = (cursor: string): number => Number(BigInt(cursor.split('-')[0] ?? '0') >> 32n)

const symbol = (text: string): string => xdr.ScVal.scvSymbol(text).toXdr('base64')
