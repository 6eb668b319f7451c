import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { openApiDocument } from '#lib/openapi/document.ts'
import { matchPath } from './api.ts'

/** Something that was asked and answered. `path` is below the base address, and may have a query. */
export interface Exchange {
  method: string
  path: string
  status: number
  headers: Headers
  body: unknown
}

/** An operation and one of its answers, as the document names them: `POST /batches 200`. */
export type DocumentedAnswer = string

interface Response {
  headers?: Record<string, unknown>
  content?: Record<string, { schema?: unknown; examples?: Record<string, { value: { error: string } }> }>
}
interface Described {
  responses: Record<string, Response>
}

const DOCUMENT = openApiDocument('http://localhost:3000/api')
const PATHS = Object.entries(DOCUMENT.paths ?? {}).map(([path, item]) => ({ path, item }))
const ajv = new Ajv2020({ strict: false, allErrors: true })
formats.default(ajv)
ajv.addSchema(DOCUMENT, 'document')
const validators = new Map<string, ValidateFunction>()

const escaped = (key: string) => key.replaceAll('~', '~0').replaceAll('/', '~1')

/** What holds a value to the part of the document at this pointer. */
export function validatorAt(...pointer: string[]): ValidateFunction {
  const reference = `document#/${pointer.map(escaped).map(encodeURIComponent).join('/')}`
  const validate = validators.get(reference) ?? ajv.compile({ $ref: reference })
  validators.set(reference, validate)
  return validate
}

/** Whether a message is one that the document has: `{name}` in it stands for anything. */
function isDocumented(message: string, response: Response): boolean {
  const examples = Object.values(response.content?.['application/json']?.examples ?? {})
  return examples.some(({ value }) => {
    const pattern = value.error.split(/\{[\w ]+\}/).map((text) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    return new RegExp(`^${pattern.join('.+')}$`, 's').test(message)
  })
}

/**
 * Holds an exchange to the document: operation, status, headers, body and message.
 * @returns the answer's name
 * @throws Error that says what the document does not have
 */
export function requireDocumented({ method, path, status, headers, body }: Exchange): DocumentedAnswer {
  const [pathname = ''] = path.split('?', 1)
  const match = matchPath(PATHS, pathname)
  if (!match) throw new Error(`the document has no path for ${pathname}`)
  const { candidate } = match
  const verb = method.toLowerCase()
  const operation = (candidate.item as Record<string, Described | undefined>)[verb]
  const name = `${method} ${candidate.path} ${status}`
  const response = operation?.responses[status]
  if (!response) throw new Error(`the document has no ${name}: ${JSON.stringify(body)}`)
  const type = headers.get('content-type') ?? ''
  const known = Object.keys(response.content ?? {})
  const media = known.find((content) => type.startsWith(content))
  if (!media) throw new Error(`${name} is ${type}, in the document ${known.join(' or ')}`)
  const validate = validatorAt('paths', candidate.path, verb, 'responses', String(status), 'content', media, 'schema')
  if (!validate(body)) throw new Error(`${name} is not as documented: ${ajv.errorsText(validate.errors)}`)
  for (const header of ['WWW-Authenticate', 'Retry-After', 'Link']) {
    if (headers.has(header) && !response.headers?.[header]) throw new Error(`${name} has a ${header} undocumented`)
  }
  if (isRefusal(body) && !known.includes('text/plain') && !isDocumented(body.error, response) && status !== 200) {
    throw new Error(`the document does not have this message of ${name}: ${body.error}`)
  }
  return name
}

function isRefusal(body: unknown): body is { error: string } {
  return typeof body === 'object' && body !== null && 'error' in body && typeof body.error === 'string'
}

/** The name of every answer in the document. */
export const DOCUMENTED_ANSWERS: DocumentedAnswer[] = PATHS.flatMap(({ path, item }) =>
  Object.entries(item as Record<string, Described>).flatMap(([method, { responses }]) =>
    Object.keys(responses).map((status) => `${method.toUpperCase()} ${path} ${status}`),
  ),
)
