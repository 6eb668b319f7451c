import type { z } from 'zod'
import { type FieldProblem, isRefusalCode, Refusal, type RefusalCode } from '#lib/refusal/refusal.ts'

/**
 * Parses `value` by `schema`.
 * @throws Refusal the 400 of the first bad field; with `fields` if several are bad
 */
export function parse<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const parsed = schema.safeParse(value, { error: defaultMessage, reportInput: true })
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  if (!issue) throw parsed.error
  throw new Refusal(codeOf(issue), describeIssue(issue), fieldsOf(parsed.error))
}

/** The message of an issue after the name of its field, which the messages of schemas leave out. */
export const describeIssue = ({ path, message }: z.core.$ZodIssue): string =>
  path.length === 0 ? message : `${path.join('.')} ${message}`

/** A body can have ten thousand bad fields. */
const MAX_FIELDS = 100

/** Every bad field once, if there are several. */
function fieldsOf({ issues }: z.ZodError): { fields?: FieldProblem[]; fieldsOmitted?: number } {
  const messages = new Map<string, string>()
  for (const issue of issues) {
    const path = issue.path.join('.')
    if (path !== '' && !messages.has(path)) messages.set(path, describeIssue(issue))
  }
  if (messages.size < 2) return {}
  const fields = [...messages].slice(0, MAX_FIELDS).map(([path, message]) => ({ path, message }))
  const fieldsOmitted = messages.size - fields.length
  return { fields, ...(fieldsOmitted > 0 && { fieldsOmitted }) }
}

/**
 * The code of an issue: that of the innermost named field of its path. A field is `-required` if it is absent, or if the
 * schema says so in `params.problem`.
 */
export function codeOf(issue: z.core.$ZodIssue): RefusalCode {
  if (issue.code === 'unrecognized_keys') return 'query-unknown'
  const name = issue.path.findLast((part) => typeof part === 'string')
  if (name === undefined) return 'body-invalid'
  const problem = issue.code === 'custom' ? issue.params?.problem : undefined
  const isRequired = problem === 'required' || (problem === undefined && issue.input === undefined)
  const code = fieldCode(name, isRequired ? 'required' : 'invalid')
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

/** The message of an issue for which the schema has none. Zod's own messages are not meant for users. */
function defaultMessage(issue: z.core.$ZodRawIssue): string {
  if (issue.code === 'unrecognized_keys') return `unknown query parameter: ${issue.keys.join(', ')}`
  if ((issue.path ?? []).length === 0) return 'the body must be a JSON object'
  if (issue.input === undefined) return 'required'
  if (issue.code === 'invalid_type') return `must be ${TYPES[issue.expected] ?? 'of another type'}`
  if (issue.code === 'invalid_value') return `must be ${issue.values.map(String).join(' or ')}`
  return 'is malformed'
}
