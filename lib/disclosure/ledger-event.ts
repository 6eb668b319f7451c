import type { rpc } from '@stellar/stellar-sdk'
import { ledgerOf, readEvents } from '#lib/stellar/events.ts'
import { readLedgerRange } from '#lib/stellar/ledger-range.ts'
import type { ArchivedEvent, TokenArchive } from '#lib/wallet/archive.ts'
import type { LedgerEvent } from './payment.ts'
import type { ClosedLedger } from './report.ts'

/** The name of the RPC as the source of an event. */
export const RPC_SOURCE = 'the RPC'

/** The latest ledger of an RPC. */
export async function readLatestLedger(server: Pick<rpc.Server, 'getTransaction'>): Promise<ClosedLedger> {
  const { latestLedger, latestLedgerCloseTime } = await readLedgerRange(server)
  return closedLedger(latestLedger, latestLedgerCloseTime)
}

/** @param time when it closed, unix seconds */
export const closedLedger = (ledger: number, time: number | string): ClosedLedger => ({
  ledger,
  closedAt: new Date(Number(time) * 1_000).toISOString(),
})

/** The events that match a filter, from a ledger that the RPC still has to the latest, in ledger order. */
export async function readRecentEvents(
  server: Pick<rpc.Server, 'getEvents'>,
  filters: rpc.Api.EventFilter[],
  startLedger: number,
): Promise<LedgerEvent[]> {
  const { events } = await readEvents(server, filters, { startLedger })
  return events.map(fromRpc)
}

export function fromRpc(event: rpc.Api.EventResponse): LedgerEvent {
  return {
    id: event.id,
    contract: event.contractId?.toString() ?? '',
    ledger: event.ledger,
    closedAt: new Date(event.ledgerClosedAt).toISOString(),
    transaction: event.txHash,
    eventIndex: indexOf(event.id),
    topics: event.topic.map((topic) => topic.toXdr('base64')),
    data: event.value.toXdr('base64'),
    source: RPC_SOURCE,
  }
}

export function fromArchive({ name }: TokenArchive, event: ArchivedEvent): LedgerEvent {
  return {
    id: event.id,
    contract: event.contract_id,
    ledger: ledgerOf(event.id),
    closedAt: new Date(event.ledger_close_time).toISOString(),
    transaction: event.tx_hash,
    eventIndex: indexOf(event.id),
    topics: event.topics_xdr,
    data: event.data_xdr,
    source: name,
  }
}

/** Everything that sources must agree about. */
export function digest(event: LedgerEvent | undefined): string {
  if (!event) return 'none'
  const { source: _, ...content } = event
  return JSON.stringify(Object.entries(content).toSorted(([one], [other]) => (one < other ? -1 : 1)))
}

/** An event id's second part is the event's place in the operation (SEP-35). */
const indexOf = (id: string): number => Number(id.split('-')[1])

/**
 * The network's fee events have a transaction's hash, and positions before and after all transactions of the ledger.
 */
export function isOfOperation(id: string): boolean {
  const order = Number((BigInt(id.split('-')[0] ?? '0') >> 12n) & 0xf_ffffn)
  return order > 0 && order < 0xf_ffff
}
