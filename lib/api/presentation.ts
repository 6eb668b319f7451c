import { z } from 'zod'
import type { ZodOpenApiOperationObject, ZodOpenApiResponseObject } from 'zod-openapi'
import { messageOf, type RefusalCode } from '#lib/refusal/refusal.ts'
import { CALLERS } from './caller.ts'
import type { Operation, RequestSpec, ResponseSpec } from './operation.ts'
import { refusalsOf } from './operation-refusals.ts'

/** The body of every refusal. */
export const refusalShape = z.looseObject({
  error: z.string().meta({ description: 'the problem, for people' }),
  code: z.string().meta({ description: 'the problem, for programs', 'x-extension': true }),
  fields: z
    .array(z.object({ path: z.string(), message: z.string() }))
    .optional()
    .meta({ description: 'every bad field, if there are several', 'x-extension': true }),
  fieldsOmitted: z
    .int()
    .optional()
    .meta({ description: 'how many more fields are bad: `fields` lists at most 100', 'x-extension': true }),
})

/** The meaning of each status. */
export const TITLES: Record<number, string> = {
  400: 'A field is missing or invalid; the message names it',
  401: 'The bearer token is missing, expired or invalid',
  403: 'The caller may not do this',
  404: 'Not found, or another organisation’s',
  409: 'It conflicts with the current state',
  413: 'The body is larger than 256 KiB',
  415: 'The body has an unsupported media type',
  422: 'The sponsor refuses to pay, the mail server refuses the mail, or the Idempotency-Key belongs to another request',
  429: 'Too many requests, or too soon after the last one',
  500: 'Unexpected failure',
  501: 'Not configured, or not performed by the service',
  503: 'A dependency is unreachable, or the service is busy',
}

const RETRY = { 'Retry-After': { description: 'Seconds', schema: { type: 'integer' } } } as const
const HEADERS: Record<number, ZodOpenApiResponseObject['headers']> = {
  401: { 'WWW-Authenticate': { description: 'How to authenticate', schema: { type: 'string', example: 'Bearer' } } },
  429: RETRY,
  503: RETRY,
}

/** The codes of other statuses that pass by themselves. */
const PASSING: readonly RefusalCode[] = ['reconciling', 'idempotency-key-in-use']

/** The headers of a refusal. */
const headersOfRefusals = (status: number, codes: readonly RefusalCode[]): ZodOpenApiResponseObject['headers'] =>
  codes.some((code) => PASSING.includes(code)) ? RETRY : HEADERS[status]

const LINK = {
  Link: {
    description: 'The next page, if there is one (RFC 8288)',
    schema: { type: 'string', example: '<?limit=100&cursor=MTc2…>; rel="next"' },
  },
} as const
const PAGE_HEADERS = {
  link: LINK,
  'link and total': {
    ...LINK,
    'X-Total-Count': {
      description: 'The number of records, if `limit` is given. Absent if more than 10,000 records match the filters',
      schema: { type: 'integer' },
    },
  },
} as const
const ETAG = { ETag: { description: 'The version of the content (RFC 9110)', schema: { type: 'string' } } } as const

/** The OpenAPI object of an operation. */
export function presentOperation(operation: Operation): ZodOpenApiOperationObject {
  const { id, group, caller, summary, description, extension, query, body, parameters, idempotent } = operation
  const { scheme, role } = { role: operation.role, ...CALLERS[caller] }
  return {
    operationId: id,
    tags: [group],
    summary,
    ...(description !== undefined && { description }),
    ...(extension && { 'x-extension': true }),
    ...(operation.deprecated && { deprecated: true }),
    ...(role && { 'x-role': role }),
    security: scheme === undefined ? [] : [{ [scheme]: [] }],
    ...((query || parameters || idempotent) && {
      requestParams: {
        ...(query && { query: querySchema(query) }),
        ...(parameters && { path: pathSchema(parameters) }),
        ...(idempotent && { header: IDEMPOTENCY_HEADER }),
      },
    }),
    ...(body && { requestBody: presentBody(body) }),
    responses: presentResponses(operation),
  }
}

/** The request header of operations that take an Idempotency-Key. */
export const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  example: '8e03978e-40d5-43dd-bc93-6894a57f9324',
  description: [
    '1 to 255 visible ASCII characters, such as a UUID. For 24 hours, a request with the same key and body is not performed',
    'again: the response is presented again.',
  ].join(' '),
} as const

const IDEMPOTENCY_HEADER = z.object({
  [IDEMPOTENCY_KEY.name]: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .meta({ description: IDEMPOTENCY_KEY.description, examples: [IDEMPOTENCY_KEY.example], 'x-extension': true }),
})

function presentBody({ schema, docsSchema = schema, example, form }: RequestSpec<z.ZodType>) {
  const content = { schema: docsSchema, example }
  return {
    required: !schema.safeParse({}).success,
    content: { 'application/json': content, ...(form && { 'application/x-www-form-urlencoded': content }) },
  }
}

/** The parameters of a query, each with its example. */
function querySchema({ schema, docsSchema = schema, example }: RequestSpec<z.ZodType>) {
  if (!(docsSchema instanceof z.ZodObject)) throw new Error('the schema of a query must be an object')
  const fields = Object.entries(docsSchema.shape as Record<string, z.ZodType>).map(([name, field]) => {
    return [name, example[name] === '' ? field : field.meta({ ...field.meta(), examples: [example[name]] })]
  })
  return z.object(Object.fromEntries(fields))
}

function pathSchema(parameters: Record<string, { description: string; example: string }>) {
  const fields = Object.entries(parameters).map(([name, { description, example }]) => {
    return [name, z.string().meta({ description, examples: [example] })]
  })
  return z.object(Object.fromEntries(fields))
}

/** The default response of an operation that always refuses. Tools expect a response for success. */
const NEVER_DONE: ZodOpenApiResponseObject = {
  description: 'The operation always refuses',
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Refusal' } } },
}

function presentResponses(operation: Operation) {
  const { response, otherResponses = {}, idempotent } = operation
  return Object.fromEntries([
    response ? ['200', presentResponse(response, idempotent !== undefined)] : ['default', NEVER_DONE],
    ...(response?.cached ? [['304', { description: 'The content has not changed', headers: ETAG }] as const] : []),
    ...[...refusalsOf(operation)].map(([status, codes]) => [String(status), presentRefusals(status, codes)]),
    ...Object.entries(otherResponses).map(([status, other]) => {
      const codes = refusalsOf(operation).get(Number(status)) ?? []
      return [status, { ...presentResponse(orRefusal(other, codes)), headers: HEADERS[Number(status)] }]
    }),
  ])
}

/** Adds the refusals that share a response's status. */
function orRefusal(other: ResponseSpec<z.ZodType>, codes: readonly RefusalCode[]): ResponseSpec<z.ZodType> {
  if (codes.length === 0) return other
  const schema = z.union([other.schema, refusalShape.extend({ code: z.enum(codes) })])
  return { ...other, schema, description: [`${other.description}.`, '', ...linesOf(codes)].join('\n') }
}

function presentResponse(response: ResponseSpec<z.ZodType>, isIdempotent = false): ZodOpenApiResponseObject {
  const { description, schema, contentType = 'application/json', example } = response
  const headers = headersOf(response, isIdempotent)
  return {
    description,
    ...(Object.keys(headers).length > 0 && { headers }),
    content: { [contentType]: { schema, example } },
  }
}

const REPLAYED = {
  'Idempotency-Replayed': {
    description: '`true` if an earlier request with the same Idempotency-Key did the work',
    schema: { type: 'string', enum: ['true'] },
  },
} as const

export const headersOf = (
  { paged, cached }: ResponseSpec<z.ZodType>,
  isIdempotent: boolean,
): Record<string, { description: string }> => ({
  ...(paged && PAGE_HEADERS[paged]),
  ...(cached && ETAG),
  ...(isIdempotent && REPLAYED),
})

const linesOf = (codes: readonly RefusalCode[]) => codes.map((code) => `- \`${code}\`: ${messageOf(code)}`)

function presentRefusals(status: number, codes: readonly RefusalCode[]): ZodOpenApiResponseObject {
  const schema = { allOf: [{ $ref: '#/components/schemas/Refusal' }], properties: { code: { enum: [...codes] } } }
  const headers = headersOfRefusals(status, codes)
  return {
    description: [`${TITLES[status] ?? 'An error'}.`, '', ...linesOf(codes)].join('\n'),
    ...(headers && { headers }),
    content: { 'application/json': { schema } },
  }
}
