import type { z } from 'zod'
import { type FieldProblem, isRefusalCode, Refusal, type RefusalCode } from '#lib/refusal/refusal.ts'

/**
 * Parses `value` by `schema`.
 * @throws Refusal the 400 of the first bad field; with `fields` when several are bad
 */
export function parse<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const parsed = schema.safeParse(value, { error: wordIssue })
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const path = issue?.path ?? []
  const fields = fieldsOf(parsed.error)
  const message = issue ? problemOf(issue) : 'the request is malformed'
  throw new Refusal(codeOf(path, message), message, fields.length > 1 ? { fields } : {})
}

function problemOf({ path, message }: z.core.$ZodIssue): string {
  const field = path.join('.')
  const isNamed = [field, String(path[0])].some((name) => message.startsWith(`${name} `))
  if (path.length === 0 || isNamed) return message
  const last = `${String(path.at(-1))} `
  return `${field} ${message.startsWith(last) ? message.slice(last.length) : message}`
}

/** As many as a person reads. A body can be wrong in ten thousand places. */
const MOST_FIELDS = 100

function fieldsOf(error: z.ZodError): FieldProblem[] {
  const first = new Map<string, string>()
  for (const issue of error.issues) {
    const path = issue.path.join('.')
    if (path !== '' && !first.has(path)) first.set(path, problemOf(issue))
  }
  return [...first].slice(0, MOST_FIELDS).map(([path, message]) => ({ path, message }))
}

/** The code of a field: the last name on the way to it, and whether the schema calls it missing or bad. */
function codeOf(path: readonly PropertyKey[], message: string): RefusalCode {
  const name = path.findLast((part) => typeof part === 'string')
  if (name === undefined) return 'body-invalid'
  const code = fieldCode(name, message.endsWith('required') ? 'required' : 'invalid')
  return isRefusalCode(code) ? code : 'body-invalid'
}

/** The code of a field by its name: `orgName` is `org-name-required` or `org-name-invalid`. */
export function fieldCode(name: string, problem: 'required' | 'invalid'): string {
  const words = name.replaceAll('_', '-').replaceAll(/[A-Z]+/g, (capitals) => `-${capitals.toLowerCase()}`)
  return `${words}-${problem}`
}

const TYPES: Partial<Record<string, string>> = {
  array: 'a list',
  boolean: 'true or false',
  int: 'a whole number',
  number: 'a number',
  object: 'an object',
  string: 'a string',
}

/** The words for a problem where a schema has none of its own: a validator's words are not for users. */
function wordIssue(issue: z.core.$ZodRawIssue): string {
  const isWhole = (issue.path ?? []).length === 0
  if (isWhole) return 'the body must be a JSON object'
  if (issue.input === undefined) return 'required'
  if (issue.code === 'invalid_type') return `must be ${TYPES[issue.expected] ?? 'of another type'}`
  if (issue.code === 'invalid_value') return `must be ${issue.values.map(String).join(' or ')}`
  return 'is malformed'
}
