import { eventId } from '../apply/event-records.ts'
import type { Ledger } from '../apply/ledger.ts'
import type { History } from '../state/history.ts'
import type { EventRecord } from '../state/record.ts'
import { concerns, matches, readFilters } from './event-filters.ts'
import { invalidParams, invalidRequest, type Params } from './json-rpc.ts'
import { type Page, readLedger, readPage } from './paging.ts'

/** Ledgers that one call looks at, at most. */
const SCAN_LEDGERS = 10_000

export function getEvents({ history }: Ledger, params: Params): object {
  const page = readPage(params, { initial: 100, maximum: 10_000 })
  const filters = readFilters(params.filters)
  const { start, after } = startOf(page, params, history)
  const latest = history.latest()
  const oldest = history.oldest()
  const endLedger = readLedger(params, 'endLedger') ?? latest.sequence + 1
  const end = Math.min(start + SCAN_LEDGERS, endLedger, latest.sequence + 1)
  const found: EventRecord[] = []
  for (let sequence = Math.max(start, oldest.sequence); sequence < end && found.length < page.limit; sequence += 1) {
    const ledger = history.ledger(sequence)
    if (!ledger?.events || !concerns(filters, ledger.events.contracts)) continue
    const matching = history.events(ledger).filter((event) => event.id > after && matches(event, filters))
    found.push(...matching.slice(0, page.limit - found.length))
  }
  const last = found.length === page.limit ? found.at(-1) : undefined
  return {
    events: found,
    cursor: last?.id ?? eventId(Math.max(end - 1, 0), 1_048_575, 4095, 4_294_967_295),
    latestLedger: latest.sequence,
    oldestLedger: oldest.sequence,
    latestLedgerCloseTime: String(latest.closeTime),
    oldestLedgerCloseTime: String(oldest.closeTime),
  }
}

/** Ids sort as text: they have a fixed width. */
function startOf({ startLedger, cursor }: Page, params: Params, history: History): { start: number; after: string } {
  if (cursor !== undefined) {
    if (startLedger !== undefined || readLedger(params, 'endLedger') !== undefined) {
      throw invalidParams('ledger ranges and cursor cannot both be set')
    }
    if (!/^\d{19}-\d{10}$/.test(cursor)) throw invalidParams(`invalid event id ${cursor}`)
    return { start: Number(BigInt(cursor.slice(0, 19)) >> 32n), after: cursor }
  }
  if (startLedger === undefined) throw invalidParams('startLedger must be positive')
  const endLedger = readLedger(params, 'endLedger')
  if (endLedger !== undefined && endLedger <= startLedger) {
    throw invalidParams('endLedger must be after startLedger')
  }
  const oldest = history.oldest().sequence
  const latest = history.latest().sequence
  if (startLedger >= oldest && startLedger <= latest) return { start: startLedger, after: '' }
  throw invalidRequest(`startLedger must be within the ledger range: ${oldest} - ${latest}`)
}
