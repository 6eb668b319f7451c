import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { interfaceDocument } from '#lib/api/interface.ts'
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
type DocumentedAnswer = string

interface Response {
  headers?: Record<string, unknown>
  content?: Record<string, { schema?: unknown }>
}
interface Described {
  responses: Record<string, Response>
}

const DOCUMENT = interfaceDocument('http://localhost:3000/api')
const PATHS = Object.entries(DOCUMENT.paths ?? {}).map(([path, item]) => ({ path, item }))
const ajv = new Ajv2020({ strict: false, allErrors: true })
formats.default(ajv)
ajv.addSchema(DOCUMENT, 'document')
const validators = new Map<string, ValidateFunction>()

const escaped = (key: string) => key.replaceAll('~', '~0').replaceAll('/', '~1')

/** A validator for the part of the document at this pointer. */
export function validatorAt(...pointer: string[]): ValidateFunction {
  const reference = `document#/${pointer.map(escaped).map(encodeURIComponent).join('/')}`
  const validate = validators.get(reference) ?? ajv.compile({ $ref: reference })
  validators.set(reference, validate)
  return validate
}

/**
 * Holds an exchange to the document: operation, status, headers and body, the code of a refusal included.
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
  if (!headers.has('X-Request-Id')) throw new Error(`${name} has no X-Request-Id`)
  for (const header of ['WWW-Authenticate', 'Retry-After', 'Link', 'X-Total-Count']) {
    if (headers.has(header) && !response.headers?.[header]) throw new Error(`${name} has a ${header} undocumented`)
  }
  return name
}

/** The name of every answer in the document. */
export const DOCUMENTED_ANSWERS: DocumentedAnswer[] = PATHS.flatMap(({ path, item }) =>
  Object.entries(item as Record<string, Described>).flatMap(([method, { responses }]) =>
    Object.keys(responses)
      .filter((status) => status !== 'default')
      .map((status) => `${method.toUpperCase()} ${path} ${status}`),
  ),
)
