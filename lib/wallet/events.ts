import { type rpc, scValToNative, xdr } from '@stellar/stellar-sdk'
import { ledgerOf, readEvents } from '#lib/stellar/events.ts'
import { reachLedger } from '#lib/stellar/ledger-error.ts'
import { readLedgerRange } from '#lib/stellar/ledger-range.ts'
import type { ArchivedEvent, EventArchive } from './archive.ts'
import type { Fields } from './decryption.ts'
import type { Deployment } from './deployment.ts'
import { scAddress } from './invocation.ts'
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

/**
 * The token's events that concern an account, in ledger order, up to the latest ledger, and the cursor to continue
 * from. Starts after `since`, a cursor, by default with the account's registration. Events that the RPC no longer has
 * come from the deployment's archives, from the ledger that they name as the start of the replay. Without an archive,
 * the events start with the oldest ledger that the RPC has.
 * @throws WalletError `archive-unavailable`, or `history-incomplete` if no archive has all the events that the RPC
 *   lacks
 */
export async function readAccountEvents(
  deployment: Deployment,
  address: string,
  since?: string,
): Promise<AccountHistory> {
  const { archives = [], rpc: server } = deployment
  const { floor, seam } = limitsOf(await readLedgerRange(server))
  const isRecent = since !== undefined && (archives.length === 0 || ledgerOf(since) >= floor)
  const recent = await readRecentEvents(deployment, address, isRecent ? { cursor: since } : { startLedger: floor })
  if (archives.length === 0) return recent
  const isRegistration = ({ name, addresses }: AccountEvent) => name === 'register' && addresses[0] === address
  if (isRecent || recent.events.some(isRegistration)) return recent
  // The floor moved while the RPC was read, so events just above it are also taken from the archive.
  const { archive, events: old } = await readOldEvents(archives, address, { since, through: seam - 1 })
  const events = [...old, ...recent.events.filter(({ id }) => ledgerOf(id) >= seam)]
  return { events: events.filter(({ id }) => id > (since ?? '')), cursor: recent.cursor, archive }
}

/** Events in ledger order, the cursor to continue from, and the name of the archive that provided the older ones. */
interface AccountHistory {
  events: AccountEvent[]
  cursor: string
  archive?: string
}

/**
 * The RPC drops ledgers while it is read. Requests start this many ledgers above its oldest; the archives are read up
 * to the seam.
 */
const FLOOR_MARGIN = 2
const SEAM_MARGIN = 100

/**
 * `floor`: the first ledger to request from an RPC; a lower start may soon be an error. `seam`: the first ledger whose events
 * are read from the RPC although there are archives. Archives lag behind the RPC, so at most the older half of the ledgers
 * that it still has is read from an archive.
 */
export function limitsOf({ oldestLedger, latestLedger }: { oldestLedger: number; latestLedger: number }) {
  const floor = Math.min(oldestLedger + FLOOR_MARGIN, latestLedger)
  const middle = Math.floor((oldestLedger + latestLedger) / 2)
  return { floor, seam: Math.max(floor, Math.min(oldestLedger + SEAM_MARGIN, middle)) }
}

/**
 * The events through `through` from the first archive that has the start of the replay and is complete. If an archive
 * fails, the read fails. If none has a start, the account may not be registered at all: the first complete archive is
 * read from its beginning, and the commitments decide.
 */
async function readOldEvents(
  archives: readonly EventArchive[],
  address: string,
  { since, through }: { since: string | undefined; through: number },
): Promise<{ archive: string; events: AccountEvent[] }> {
  const read = async (archive: EventArchive, from: number | undefined) => {
    const { events, complete } = await archive.readEvents(address, from, through)
    return complete && { archive: archive.name, events: events.map((event) => decodeArchived(archive, event)) }
  }
  const unaware: EventArchive[] = []
  for (const archive of archives) {
    const from = since === undefined ? await archive.findStart(address, through) : ledgerOf(since)
    if (from === undefined) unaware.push(archive)
    else {
      const history = await read(archive, from)
      if (history) return history
    }
  }
  for (const archive of unaware) {
    const history = await read(archive, undefined)
    if (history) return history
  }
  const names = archives.map(({ name }) => name).join(' and ')
  throw new WalletError(
    'history-incomplete',
    `events of ${address} through ledger ${through} are missing from ${names}. Nothing is lost on the ledger: try an archive that has them`,
  )
}

/** The events that the RPC has since a ledger, or after a cursor. */
async function readRecentEvents(
  deployment: Deployment,
  address: string,
  from: { startLedger: number } | { cursor: string },
): Promise<AccountHistory> {
  const { events, cursor } = await reachLedger(
    readEvents(deployment.rpc, accountFilters(deployment.token, address), from),
  )
  return { events: events.map(decodeEvent), cursor }
}

/**
 * The events that name an account. At most five topic lists fit into a filter; filters and lists are alternatives.
 */
export function accountFilters(token: string, address: string): rpc.Api.EventFilter[] {
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
    // They change no balance of the account, but they are payments of its owner, and of the channel.
    [symbol('spender_transfer'), '*', own, '*'],
    [symbol('spender_transfer'), own, '*', '*'],
  ]
  return [outgoing, incoming, folded].map((topics) => ({ type: 'contract', contractIds: [token], topics }))
}

function decodeEvent({
  id,
  topic,
  value,
  txHash,
}: Pick<rpc.Api.EventResponse, 'id' | 'topic' | 'value' | 'txHash'>): AccountEvent {
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

function decodeArchived(
  { name }: EventArchive,
  { id, tx_hash: txHash, topics_xdr, data_xdr }: ArchivedEvent,
): AccountEvent {
  const decode = (value: string) => xdr.ScVal.fromXdr(value, 'base64')
  try {
    return decodeEvent({ id, txHash, topic: topics_xdr.map(decode), value: decode(data_xdr) })
  } catch (cause) {
    throw new WalletError('archive-unavailable', `the archive ${name} returned an event that cannot be read`, { cause })
  }
}

const symbol = (text: string): string => xdr.ScVal.scvSymbol(text).toXdr('base64')
