import type { History } from '../state/history.ts'
import { invalidParams, invalidRequest, isObject, type Params } from './json-rpc.ts'

export interface Page {
  readonly startLedger: number | undefined
  readonly cursor: string | undefined
  readonly limit: number
}

/** startLedger, or a pagination cursor; the limit has a default and a maximum of the method's own. */
export function readPage(
  params: Params,
  limits: { initial: number; maximum: number; tooMany: (message: string) => Error },
): Page {
  const pagination = params.pagination ?? {}
  if (!isObject(pagination)) throw invalidParams('invalid parameters')
  const { cursor } = pagination
  if (cursor !== undefined && cursor !== null && typeof cursor !== 'string') throw invalidParams('invalid parameters')
  const asked = pagination.limit ?? 0
  if (!isCount(asked)) throw invalidParams('invalid parameters')
  if (asked > limits.maximum) throw limits.tooMany(`limit must not exceed ${limits.maximum}`)
  const limit = asked === 0 ? limits.initial : asked
  return { startLedger: readLedger(params, 'startLedger'), cursor: cursor || undefined, limit }
}

export function readLedger(params: Params, name: 'startLedger' | 'endLedger'): number | undefined {
  const value = params[name]
  if (value === undefined || value === null || value === 0) return undefined
  if (!isCount(value)) throw invalidParams('invalid parameters')
  return value
}

/** The ledger at which a page of getTransactions or getLedgers begins. */
export function startOf({ startLedger, cursor }: Page, history: History): number | undefined {
  if (cursor !== undefined) {
    if (startLedger !== undefined) throw invalidRequest('startLedger and cursor cannot both be set')
    return undefined
  }
  const oldest = history.oldest().sequence
  const latest = history.latest().sequence
  const start = startLedger ?? 0
  if (start >= oldest && start <= latest) return start
  throw invalidRequest(
    `start ledger (${start}) must be between the oldest ledger: ${oldest} and the latest ledger: ${latest} for this rpc instance`,
  )
}

/** A decimal cursor, read and refused as Go's strconv does it: getTransactions has 64 bits and a sign, getLedgers neither. */
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
