import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { interfaceDocument } from '#lib/api/interface.ts'
import { matchPath } from './api.ts'

/** A request and its response. `path` is relative to the base address, and may have a query. */
export interface Exchange {
  method: string
  path: string
  status: number
  headers: Headers
  body: unknown
}

/** An operation with one of its responses, such as `POST /batches 200`, or a header of it: `GET /batches 200 Link`. */
type ResponseName = string

interface Response {
  headers?: Record<string, unknown>
  content?: Record<string, { schema?: unknown }>
}
interface DocumentedPath {
  responses: Record<string, Response>
}

/** The headers that a response must not have unless the document declares them. */
const HEADERS = ['ETag', 'Idempotency-Replayed', 'Link', 'Retry-After', 'WWW-Authenticate', 'X-Total-Count']

const DOCUMENT = interfaceDocument('http://localhost:3000/api')
const PATHS = Object.entries(DOCUMENT.paths ?? {}).map(([path, item]) => ({ path, item }))
const ajv = new Ajv2020({ strict: false, allErrors: true })
formats.default(ajv)
ajv.addSchema(DOCUMENT, 'document')
const validators = new Map<string, ValidateFunction>()

const escaped = (key: string) => key.replaceAll('~', '~0').replaceAll('/', '~1')

/** Compiles a validator for the part of the document at this pointer. */
export function validatorAt(...pointer: string[]): ValidateFunction {
  const reference = `document#/${pointer.map(escaped).map(encodeURIComponent).join('/')}`
  const validate = validators.get(reference) ?? ajv.compile({ $ref: reference })
  validators.set(reference, validate)
  return validate
}

/**
 * Compares an exchange with the document: operation, status, headers and body, including the code of an error.
 * @returns the names of the response and its headers
 * @throws Error naming the part that the document does not declare
 */
export function requireDocumented({ method, path, status, headers, body }: Exchange): ResponseName[] {
  const [pathname = ''] = path.split('?', 1)
  const match = matchPath(PATHS, pathname)
  if (!match) throw new Error(`the document has no path for ${pathname}`)
  const { candidate } = match
  const verb = method.toLowerCase()
  const operation = (candidate.item as Record<string, DocumentedPath | undefined>)[verb]
  const name = `${method} ${candidate.path} ${status}`
  const response = operation?.responses[status]
  if (!response) throw new Error(`the document has no ${name}: ${JSON.stringify(body)}`)
  const type = headers.get('content-type') ?? ''
  const documented = Object.keys(response.content ?? {})
  const media = documented.find((content) => type.startsWith(content))
  if (documented.length === 0 && body) throw new Error(`${name} has a body, in the document none`)
  if (documented.length > 0 && !media) throw new Error(`${name} is ${type}, in the document ${documented.join(' or ')}`)
  const pointer = ['paths', candidate.path, verb, 'responses', String(status), 'content']
  const validate = media === undefined ? undefined : validatorAt(...pointer, media, 'schema')
  if (validate && !validate(body)) throw new Error(`${name} is not as documented: ${ajv.errorsText(validate.errors)}`)
  if (!headers.has('X-Request-Id')) throw new Error(`${name} has no X-Request-Id`)
  const sent = HEADERS.filter((header) => headers.has(header))
  for (const header of sent) {
    if (!response.headers?.[header]) throw new Error(`${name} has a ${header} undocumented`)
  }
  return [name, ...sent.map((header) => `${name} ${header}`)]
}

/** The name of every response in the document, and of every header of one. */
export const DOCUMENTED: ResponseName[] = PATHS.flatMap(({ path, item }) =>
  Object.entries(item as Record<string, DocumentedPath>).flatMap(([method, { responses }]) =>
    Object.entries(responses)
      .filter(([status]) => status !== 'default')
      .flatMap(([status, { headers = {} }]) => {
        const name = `${method.toUpperCase()} ${path} ${status}`
        return [name, ...Object.keys(headers).map((header) => `${name} ${header}`)]
      }),
  ),
)
