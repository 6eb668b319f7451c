import { z } from 'zod'
import { fieldCode } from '#lib/http/parsing.ts'
import { isRefusalCode, type RefusalCode, statusOf } from '#lib/refusal/refusal.ts'
import { CALLERS } from './caller.ts'
import type { Asked, Operation } from './operation.ts'

/** Every code that an operation can answer with, by status: its own, and those that its declaration implies. */
export function refusalsOf(operation: Operation): Map<number, RefusalCode[]> {
  const { caller, query, body, refusals = [], selfContained } = operation
  const codes = new Set<RefusalCode>([
    ...CALLERS[caller].refusals,
    ...(query ? fieldCodes(query, isRestricted) : []),
    ...(body ? fieldCodes(body) : []),
    ...(body ? (['body-invalid', 'body-incomplete', 'unsupported-media', 'busy'] as const) : []),
    ...refusals,
    // An operation without an answer refuses every request before its body is read.
    ...(operation.answer ? (['too-large'] as const) : []),
    'internal',
    'not-configured',
    ...(selfContained ? [] : (['unavailable'] as const)),
  ])
  const byStatus = Map.groupBy(codes, (code) => statusWithin(operation, code))
  return new Map([...byStatus].sort(([one], [other]) => one - other).map(([status, list]) => [status, list.sort()]))
}

/** The status of a code in an operation: one with a fixed `failure` answers 500 in place of 503. */
function statusWithin({ failure }: Operation, code: RefusalCode): number {
  const status = statusOf(code)
  return failure !== undefined && status === 503 ? 500 : status
}

interface Described {
  type?: string
  properties?: Record<string, Described>
  required?: string[]
  items?: Described
  anyOf?: Described[]
  minLength?: number
  description?: string
  'x-extension'?: boolean
}

/** Whether a parameter of a query, which is always text, can be refused at all. */
const isRestricted = ({ type, description: _, 'x-extension': __, ...limits }: Described) =>
  type !== 'string' || Object.keys(limits).length > 0

/** The codes by which fields of a body or a query can be refused. Only fields for which `counts` holds are read. */
function fieldCodes({ schema }: Asked<z.ZodType>, counts = (_: Described) => true): RefusalCode[] {
  return codesWithin(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Described, counts)
}

function codesWithin(
  { properties = {}, required = [], items, anyOf = [] }: Described,
  counts: (field: Described) => boolean,
): RefusalCode[] {
  const own = Object.entries(properties).flatMap(([name, field]) => {
    if (!counts(field)) return []
    const mayBeMissing = required.includes(name) || (field.minLength ?? 0) > 0
    const codes = [fieldCode(name, 'invalid'), ...(mayBeMissing ? [fieldCode(name, 'required')] : [])]
    return [...codes.filter(isRefusalCode), ...codesWithin(field, counts)]
  })
  return [...own, ...[...(items ? [items] : []), ...anyOf].flatMap((inner) => codesWithin(inner, counts))]
}
