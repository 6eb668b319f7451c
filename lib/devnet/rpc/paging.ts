import type { History } from '../state/history.ts'
import { invalidParams, invalidRequest, isObject, type Params, wrongType } from './json-rpc.ts'
import { formatFault, readFormat, type XdrFormat } from './xdr-format.ts'

export interface Page {
  readonly startLedger: number | undefined
  readonly cursor: string | undefined
  readonly limit: number
}

/** The Go structs of paged requests, with the type of their `pagination`. */
const PAGINATION = {
  GetEventsRequest: 'protocol.PaginationOptions',
  GetLedgersRequest: 'protocol.LedgerPaginationOptions',
  GetTransactionsRequest: 'protocol.LedgerPaginationOptions',
}
type RequestType = keyof typeof PAGINATION

/** The startLedger or cursor of a page, and its limit. */
export function readPage(type: RequestType, params: Params, initialLimit: number): Page {
  const pagination = params.pagination ?? {}
  if (!isObject(pagination)) throw wrongType(pagination, `${type}.pagination`, PAGINATION[type])
  const { cursor } = pagination
  if (cursor !== undefined && cursor !== null && typeof cursor !== 'string') {
    throw wrongType(cursor, `${type}.pagination.cursor`, type === 'GetEventsRequest' ? 'protocol.Cursor' : 'string')
  }
  const limit = pagination.limit ?? 0
  if (!isCount(limit)) throw wrongType(limit, `${type}.pagination.limit`, 'uint')
  return {
    startLedger: readLedger(type, params, 'startLedger'),
    cursor: cursor ?? undefined,
    limit: limit || initialLimit,
  }
}

export function limitFault({ limit }: Page, maximum: number): string | undefined {
  return limit > maximum ? `limit must not exceed ${maximum}` : undefined
}

export function readLedger(type: RequestType, params: Params, name: 'startLedger' | 'endLedger'): number | undefined {
  const value = params[name]
  if (value === undefined || value === null || value === 0) return undefined
  if (!isCount(value)) throw wrongType(value, `${type}.${name}`, 'uint32')
  return value
}

/**
 * Reads the range of getTransactions and getLedgers.
 * @throws -32600 that lists all errors
 */
export function readLedgerPage(type: RequestType, params: Params, history: History): Page & { format: XdrFormat } {
  const requested = readPage(type, params, 50)
  const page = { ...requested, cursor: requested.cursor || undefined }
  const faults = [startFault(page, history) ?? limitFault(page, 200), formatFault(params)]
  const text = faults.filter((fault) => fault !== undefined).join('\n')
  if (text !== '') throw invalidRequest(text)
  return { ...page, format: readFormat(params) }
}

function startFault({ startLedger = 0, cursor }: Page, history: History): string | undefined {
  if (cursor !== undefined) {
    return startLedger === 0 ? undefined : `startLedger (${startLedger}) and cursor (${cursor}) cannot both be set`
  }
  const oldest = history.oldest().sequence
  const latest = history.latest().sequence
  if (startLedger >= oldest && startLedger <= latest) return undefined
  return `start ledger (${startLedger}) must be between the oldest ledger: ${oldest} and the latest ledger: ${latest} for this rpc instance`
}

/** Decimal cursors, parsed like Go's strconv: 64 bits signed in getTransactions, 32 bits unsigned in getLedgers. */
const CURSORS = {
  transaction: { name: 'ParseInt', shape: /^[+-]?\d+$/, least: -(2n ** 63n), most: 2n ** 63n - 1n },
  ledger: { name: 'ParseUint', shape: /^\d+$/, least: 0n, most: 2n ** 32n - 1n },
} as const

/** @throws -32602 */
export function readCursor(cursor: string, kind: keyof typeof CURSORS): bigint {
  const { name, shape, least, most } = CURSORS[kind]
  const refuse = (why: string) => invalidParams(`strconv.${name}: parsing ${JSON.stringify(cursor)}: ${why}`)
  if (!shape.test(cursor)) throw refuse('invalid syntax')
  const value = BigInt(cursor.replace('+', ''))
  if (value < least || value > most) throw refuse('value out of range')
  return value
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 0xffff_ffff
}
