import { xdr } from '@stellar/stellar-sdk'
import { eventId } from '../apply/event-records.ts'
import type { Ledger } from '../apply/ledger.ts'
import type { History } from '../state/history.ts'
import type { EventRecord } from '../state/record.ts'
import { concerns, matches, readFilters } from './event-filters.ts'
import { invalidParams, invalidRequest, type Params } from './json-rpc.ts'
import { type Page, readLedger, readPage } from './paging.ts'
import { formatXdr, readFormat } from './xdr-format.ts'

/** Ledgers that one call looks at, at most. */
const SCAN_LEDGERS = 10_000

export function getEvents({ history }: Ledger, params: Params): object {
  const format = readFormat(params)
  const page = readPage(params, { initial: 100, maximum: 10_000, tooMany: invalidParams })
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
    events: format === 'json' ? found.map(inJson) : found,
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

/** Ids sort as text: they have a fixed width. */
function startOf({ startLedger, cursor }: Page, params: Params, history: History): { start: number; after: string } {
  if (cursor !== undefined) {
    if (startLedger !== undefined || readLedger(params, 'endLedger') !== undefined) {
      throw invalidParams('ledger ranges and cursor cannot both be set')
    }
    const [, toid, index] = /^(\d{1,19})-(\d{1,10})$/.exec(cursor) ?? []
    if (toid === undefined || index === undefined) throw invalidParams(`invalid cursor: invalid event id ${cursor}`)
    const start = within(Number(BigInt(toid) >> 32n), history)
    return { start, after: `${toid.padStart(19, '0')}-${index.padStart(10, '0')}` }
  }
  if (startLedger === undefined) throw invalidParams('startLedger must be positive')
  return { start: within(startLedger, history), after: '' }
}

function within(ledger: number, history: History): number {
  const oldest = history.oldest().sequence
  const latest = history.latest().sequence
  if (ledger >= oldest && ledger <= latest) return ledger
  throw invalidRequest(`startLedger must be within the ledger range: ${oldest} - ${latest}`)
}
