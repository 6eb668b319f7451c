import type { rpc } from '@stellar/stellar-sdk'

/** Largest page of getEvents (stellar-rpc's limit). */
export const LARGEST_PAGE = 10_000

/** The events that an RPC has, in ledger order, and the end of the last page. */
export interface Events {
  events: rpc.Api.EventResponse[]
  cursor: string
  latestLedger: number
  /** Unix seconds; nodes before version 23 omit it */
  latestLedgerCloseTime?: string | undefined
}

/** The events that match a filter, from a ledger that the RPC still has, or after a cursor, up to the latest ledger. */
export async function readEvents(
  server: Pick<rpc.Server, 'getEvents'>,
  filters: rpc.Api.EventFilter[],
  start: { startLedger: number } | { cursor: string },
  limit = LARGEST_PAGE,
): Promise<Events> {
  const events: rpc.Api.EventResponse[] = []
  let from = start
  for (;;) {
    const page = await server.getEvents({ filters, limit, ...from })
    events.push(...page.events.filter(isCommitted))
    const { cursor, latestLedger, latestLedgerCloseTime } = page
    // A page that is not full may still end early: one request scans a limited number of ledgers.
    const isComplete = page.events.length < limit && ledgerOf(cursor) >= latestLedger
    if (isComplete || ('cursor' in from && from.cursor === cursor))
      return { events, cursor, latestLedger, latestLedgerCloseTime }
    from = { cursor }
  }
}

/**
 * Whether an event had an effect. Some nodes also return the events of calls that were rolled back inside a successful
 * transaction: a contract could forge a payment, including its payer. Others omit the field.
 */
export const isCommitted = (event: { inSuccessfulContractCall?: boolean | undefined }): boolean =>
  event.inSuccessfulContractCall !== false

/** The ledger of an event id or cursor: its first part holds ledger, transaction and operation (SEP-35). */
export const ledgerOf = (id: string): number => Number(BigInt(id.split('-')[0] ?? '0') >> 32n)
