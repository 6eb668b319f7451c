import { z } from 'zod'
import { fieldCode } from '#lib/http/parsing.ts'
import { isRefusalCode, type RefusalCode, statusOf } from '#lib/refusal/refusal.ts'
import { CALLERS } from './caller.ts'
import type { Operation, RequestSpec } from './operation.ts'

/** Every code that an operation can respond with, by status: those it lists and those its declaration implies. */
export function refusalsOf(operation: Operation): Map<number, RefusalCode[]> {
  const { caller, query, body, idempotent, refusals = [], selfContained } = operation
  const codes = new Set<RefusalCode>([
    ...CALLERS[caller].refusals,
    ...(query ? fieldCodes(query, isRestricted) : []),
    ...(query && schemaOf(query).additionalProperties === false ? (['query-unknown'] as const) : []),
    ...(body ? fieldCodes(body, isRefused) : []),
    ...(body ? (['body-invalid', 'body-incomplete', 'unsupported-media', 'busy'] as const) : []),
    ...(idempotent ? IDEMPOTENCY : []),
    ...refusals,
    // An operation without a response refuses every request before reading its body.
    ...(operation.response ? (['too-large'] as const) : []),
    'internal',
    'not-configured',
    ...(selfContained ? [] : (['unavailable'] as const)),
  ])
  const byStatus = Map.groupBy(codes, (code) => statusWithin(operation, code))
  return new Map([...byStatus].sort(([one], [other]) => one - other).map(([status, list]) => [status, list.sort()]))
}

/** Why a request with an Idempotency-Key is refused. */
const IDEMPOTENCY: readonly RefusalCode[] = [
  'idempotency-key-invalid',
  'idempotency-key-in-use',
  'idempotency-key-reused',
]

/** The status of a code in an operation: with a fixed `failure`, 500 replaces 503. */
function statusWithin({ failure }: Operation, code: RefusalCode): number {
  const status = statusOf(code)
  return failure !== undefined && status === 503 ? 500 : status
}

/** The parts of a JSON Schema that the declarations use. */
export interface JsonSchema {
  type?: string
  format?: string
  enum?: readonly unknown[]
  const?: unknown
  properties?: Record<string, JsonSchema>
  required?: readonly string[]
  items?: JsonSchema
  additionalProperties?: boolean | JsonSchema
  anyOf?: readonly JsonSchema[]
  description?: string
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  'x-extension'?: boolean
  /** An invalid value is an error of its row, in a response with status 200. */
  'x-row-error'?: boolean
}

/** Whether a query parameter, which is always a string, can have an invalid value. */
const isRestricted = ({ type, description: _, 'x-extension': __, ...limits }: JsonSchema) =>
  type !== 'string' || Object.keys(limits).length > 0

const isRefused = (field: JsonSchema) => field['x-row-error'] !== true

/** The codes of the fields of a body or query, limited to fields for which `counts` returns true. */
function fieldCodes(request: RequestSpec<z.ZodType>, counts: (field: JsonSchema) => boolean): RefusalCode[] {
  return codesWithin(schemaOf(request), counts)
}

const schemaOf = ({ schema }: RequestSpec<z.ZodType>) =>
  z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as JsonSchema

function codesWithin(
  { properties = {}, required = [], items, anyOf = [] }: JsonSchema,
  counts: (field: JsonSchema) => boolean,
): RefusalCode[] {
  const direct = Object.entries(properties).flatMap(([name, field]) => {
    if (!counts(field)) return []
    const mayBeMissing = required.includes(name) || (field.minLength ?? 0) > 0
    const codes = [fieldCode(name, 'invalid'), ...(mayBeMissing ? [fieldCode(name, 'required')] : [])]
    return [...codes.filter(isRefusalCode), ...codesWithin(field, counts)]
  })
  return [...direct, ...[...(items ? [items] : []), ...anyOf].flatMap((inner) => codesWithin(inner, counts))]
}
