import { type rpc, scValToNative, xdr } from '@stellar/stellar-sdk'
import type { ArchivedEvent, EventArchive } from './archive.ts'
import type { Fields } from './decryption.ts'
import type { Deployment } from './deployment.ts'
import { scAddress } from './spending.ts'
import { WalletError } from './wallet-error.ts'

/** One event of the token that concerns an account: name and addresses from its topics, the rest by field name. */
export interface AccountEvent {
  /** the RPC's id: ids sort in the order of the ledger */
  id: string
  name: string
  addresses: string[]
  fields: Fields
  /** Hex hash of the transaction, the outer one under a fee bump. */
  transaction: string
}

/** Largest page of getEvents (stellar-rpc's limit). */
const PAGE = 10_000

/**
 * The token's events that concern an account, in ledger order, up to the present, and the cursor to go on from. Starts
 * after `since`, a cursor, by default with the account's registration. Events that the RPC no longer has come from the
 * deployment's archives, from the ledger on that they name as the start of the replay. Without an archive, the events start
 * with the oldest ledger that the RPC has.
 * @throws WalletError `archive-unavailable`, or `history-incomplete` if no archive has all the events that the RPC lacks
 */
export async function readAccountEvents(
  deployment: Deployment,
  address: string,
  since?: string,
): Promise<{ events: AccountEvent[]; cursor: string }> {
  const { archives = [], rpc: server } = deployment
  if (archives.length === 0) return await readRecentEvents(deployment, address, since)
  const { oldestLedger, latestLedger } = await server.getHealth()
  const floor = Math.min(oldestLedger + FLOOR_MARGIN, latestLedger)
  const isRecent = since !== undefined && ledgerOf(since) >= floor
  const recent = await readRecentEvents(deployment, address, isRecent ? since : undefined)
  const isRegistration = ({ name, addresses }: AccountEvent) => name === 'register' && addresses[0] === address
  if (isRecent || recent.events.some(isRegistration)) return recent
  // The floor has moved on while the RPC was read: what lies a little above it comes from the archive, too.
  const seam = Math.max(floor, Math.min(oldestLedger + SEAM_MARGIN, Math.floor((oldestLedger + latestLedger) / 2)))
  const old = await readOldEvents(archives, address, { since, through: seam - 1 })
  const events = [...old.map(decodeArchived), ...recent.events.filter(({ id }) => ledgerOf(id) >= seam)]
  return { events: events.filter(({ id }) => id > (since ?? '')), cursor: recent.cursor }
}

/** The RPC drops ledgers while it is read. Requests start so many above its oldest; the archives are read up to the seam. */
const FLOOR_MARGIN = 2
const SEAM_MARGIN = 100

/** The events through `through` from the first archive that has them all. One that fails, fails the reading. */
async function readOldEvents(
  archives: readonly EventArchive[],
  address: string,
  { since, through }: { since: string | undefined; through: number },
): Promise<ArchivedEvent[]> {
  for (const archive of archives) {
    const from = since === undefined ? await archive.findStart(address, through) : ledgerOf(since)
    const { events, complete } = await archive.readEvents(address, from, through)
    if (complete) return events
  }
  const names = archives.map(({ name }) => name).join(' and ')
  throw new WalletError(
    'history-incomplete',
    `${names} lacks events of ${address} through ledger ${through}. Nothing is lost on the ledger: try an archive that has them`,
  )
}

/** The events that the RPC has after `since`, by default from its oldest ledger on. */
async function readRecentEvents(
  deployment: Deployment,
  address: string,
  since?: string,
): Promise<{ events: AccountEvent[]; cursor: string }> {
  const filters = filtersFor(deployment.token, address)
  const events: AccountEvent[] = []
  let start = since === undefined ? { startLedger: await oldestLedger(deployment.rpc) } : { cursor: since }
  for (;;) {
    const page = await deployment.rpc.getEvents({ filters, limit: PAGE, ...start })
    events.push(...page.events.map(decodeEvent))
    // A page that is not full may still end early: one request scans a limited number of ledgers.
    const complete = page.events.length < PAGE && ledgerOf(page.cursor) >= page.latestLedger
    if (complete || ('cursor' in start && start.cursor === page.cursor)) return { events, cursor: page.cursor }
    start = { cursor: page.cursor }
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

function decodeEvent({ id, topic, value, txHash }: rpc.Api.EventResponse): AccountEvent {
  const [name, ...addresses] = topic.map((each): unknown => scValToNative(each))
  const fields: unknown = scValToNative(value)
  return {
    id,
    name: String(name),
    addresses: addresses.map(String),
    fields: typeof fields === 'object' && fields !== null ? Object.fromEntries(Object.entries(fields)) : {},
    transaction: txHash,
  }
}

function decodeArchived({ id, tx_hash: txHash, topics_xdr, data_xdr }: ArchivedEvent): AccountEvent {
  const decode = (value: string) => xdr.ScVal.fromXdr(value, 'base64')
  return decodeEvent({ id, txHash, topic: topics_xdr.map(decode), value: decode(data_xdr) } as rpc.Api.EventResponse)
}

/** The floor rises with every ledger, and a start below it is an error: stay a little above. */
async function oldestLedger(server: rpc.Server): Promise<number> {
  const { oldestLedger: oldest, latestLedger } = await server.getHealth()
  return Math.min(oldest + FLOOR_MARGIN, latestLedger)
}

/** A cursor is an event id: its first part holds ledger, transaction and operation (SEP-35). */
const ledgerOf = (cursor: string): number => Number(BigInt(cursor.split('-')[0] ?? '0') >> 32n)

const symbol = (text: string): string => xdr.ScVal.scvSymbol(text).toXdr('base64')
