import { setImmediate } from 'node:timers/promises'
import { xdr } from '@stellar/stellar-sdk'
import { eventId } from '../apply/event-records.ts'
import type { Ledger } from '../apply/ledger.ts'
import type { History } from '../state/history.ts'
import type { EventRecord } from '../state/record.ts'
import { concerns, matches, readFilters } from './event-filters.ts'
import { invalidParams, invalidRequest, type Params } from './json-rpc.ts'
import { limitFault, type Page, readLedger, readPage } from './paging.ts'
import { formatXdr, readFormat } from './xdr-format.ts'

/** The maximum number of ledgers that one call searches. */
const SCAN_LEDGERS = 10_000

/** Reading thousands of busy ledgers takes seconds, so it yields between ledgers. */
export async function getEvents({ history }: Ledger, params: Params): Promise<object> {
  const page = readPage('GetEventsRequest', params, 100)
  const position = page.cursor === undefined ? undefined : readPosition(page.cursor)
  const format = readFormat(params)
  const fault = rangeFault(page, params) ?? limitFault(page, 10_000)
  if (fault !== undefined) throw invalidParams(fault)
  const filters = readFilters(params.filters)
  const start = within(position?.ledger ?? page.startLedger ?? 0, history)
  const after = position?.id ?? ''
  const latest = history.latest()
  const oldest = history.oldest()
  const endLedger = readLedger('GetEventsRequest', params, 'endLedger') ?? latest.sequence + 1
  const end = Math.min(start + SCAN_LEDGERS, endLedger, latest.sequence + 1)
  const events: EventRecord[] = []
  for (let sequence = Math.max(start, oldest.sequence); sequence < end && events.length < page.limit; sequence += 1) {
    const ledger = history.ledger(sequence)
    if (!ledger?.events || !concerns(filters, ledger.events.contracts)) continue
    const matching = history.events(ledger).filter((event) => event.id > after && matches(event, filters))
    events.push(...matching.slice(0, page.limit - events.length))
    await setImmediate()
  }
  const last = events.length === page.limit ? events.at(-1) : undefined
  return {
    events: format === 'json' ? events.map(inJson) : events,
    cursor: last?.id ?? eventId(Math.max(end - 1, 0), 1_048_575, 4095, 4_294_967_295),
    latestLedger: latest.sequence,
    oldestLedger: oldest.sequence,
    latestLedgerCloseTime: String(latest.closeTime),
    oldestLedgerCloseTime: String(oldest.closeTime),
  }
}

function inJson({ topic, value, ...event }: EventRecord): object {
  const type = xdr.ScVal
  return { ...event, ...formatXdr('json', { topic: { type, xdr: topic }, value: { type, xdr: value } }) }
}

function rangeFault({ startLedger, cursor }: Page, params: Params): string | undefined {
  const endLedger = readLedger('GetEventsRequest', params, 'endLedger')
  if (cursor === undefined) return startLedger === undefined ? 'startLedger must be positive' : undefined
  const isBoth = startLedger !== undefined || endLedger !== undefined
  return isBoth ? 'ledger ranges and cursor cannot both be set' : undefined
}

/** A cursor's ledger, and the cursor as an id. Ids have a fixed width and sort as text. */
function readPosition(cursor: string): { ledger: number; id: string } {
  const [, toid, index] = /^(\d+)-(\d+)$/.exec(cursor) ?? []
  if (toid === undefined || index === undefined) throw invalidParams('invalid parameters')
  if (BigInt(toid) >= 2n ** 63n || BigInt(index) >= 2n ** 32n) throw invalidParams('invalid parameters')
  const [place, event] = [BigInt(toid), BigInt(index)].map(String) as [string, string]
  return { ledger: Number(BigInt(toid) >> 32n), id: `${place.padStart(19, '0')}-${event.padStart(10, '0')}` }
}

function within(ledger: number, history: History): number {
  const oldest = history.oldest().sequence
  const latest = history.latest().sequence
  if (ledger >= oldest && ledger <= latest) return ledger
  throw invalidRequest(`startLedger must be within the ledger range: ${oldest} - ${latest}`)
}
