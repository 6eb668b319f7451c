import { z } from 'zod'
import type { ZodOpenApiOperationObject, ZodOpenApiResponseObject } from 'zod-openapi'
import { REFUSAL_CODES } from '#lib/http/refusal.ts'
import { OTHER_PROVIDER } from './examples.ts'
import type { Answered, Asked, Operation, OperationCaller } from './operation.ts'
import { problemsOf } from './problems.ts'

export const errorShape = z.looseObject({
  error: z.string().meta({ description: 'what went wrong, for people to read' }),
  code: z.enum(REFUSAL_CODES).meta({ description: 'what went wrong, for programs', 'x-extension': true }),
  fields: z
    .array(z.object({ path: z.string(), message: z.string() }))
    .optional()
    .meta({ description: 'every bad field, where there are several', 'x-extension': true }),
})

export const SECURITY_SCHEMES = {
  session: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'The `session` of a sign-in, valid for an hour unless the answer came with less.',
  },
  metrics: { type: 'http', scheme: 'bearer', description: 'METRICS_TOKEN, as the operator has set it.' },
  cron: { type: 'http', scheme: 'bearer', description: 'CRON_SECRET, as the operator has set it.' },
} as const

const SESSION_MESSAGES = ['missing bearer token', 'session expired', 'invalid session token']
const UNAUTHENTICATED: Record<OperationCaller, readonly string[]> = {
  anybody: [],
  session: SESSION_MESSAGES,
  employer: SESSION_MESSAGES,
  metrics: ['missing bearer token', 'invalid metrics token'],
  cron: ['missing bearer token', 'invalid scheduler token'],
}
const BODY_MESSAGES = ['the body is not JSON in UTF-8', 'the body ended early']
const NEITHER_JSON_NOR_FORM = 'the body must be application/json or application/x-www-form-urlencoded'

const TITLES: Record<number, string> = {
  400: 'A field is missing or malformed; the message names it',
  401: 'The bearer token is missing, has expired or is not one of ours',
  403: 'Not for this caller',
  404: 'There is no such thing, or it is somebody else’s',
  409: 'It contradicts what is there',
  413: 'The body is larger than 256 KiB',
  415: 'The body is of another type',
  422: 'The sponsor refuses to pay',
  429: 'Too soon after the last time',
  500: 'Something failed',
  501: 'Not done here, or not configured',
  503: 'Something that the service needs cannot be reached, or is not well',
}

const HEADERS: Record<number, ZodOpenApiResponseObject['headers']> = {
  401: { 'WWW-Authenticate': { description: 'How to authenticate', schema: { type: 'string', example: 'Bearer' } } },
  429: { 'Retry-After': { description: 'Seconds', schema: { type: 'integer' } } },
  503: { 'Retry-After': { description: 'Seconds', schema: { type: 'integer' } } },
}

const LINK = {
  Link: {
    description: 'The next page, if there is one (RFC 8288)',
    schema: { type: 'string', example: '<?limit=100&cursor=MTc2…>; rel="next"' },
  },
} as const

/** An operation of ours as OpenAPI has it. */
export function presentOperation(operation: Operation): ZodOpenApiOperationObject {
  const { id, group, caller, summary, description, extension, query, body, parameters } = operation
  const scheme = caller === 'employer' ? 'session' : caller
  return {
    operationId: id,
    tags: [group],
    summary,
    ...(description !== undefined && { description }),
    ...(extension && { 'x-extension': true }),
    ...(caller === 'employer' && { 'x-role': 'employer' }),
    security: scheme === 'anybody' ? [] : [{ [scheme]: [] }],
    ...((query || parameters) && {
      requestParams: {
        ...(query && { query: querySchema(query) }),
        ...(parameters && { path: pathSchema(parameters) }),
      },
    }),
    ...(body && {
      requestBody: {
        required: !body.schema.safeParse({}).success,
        content: {
          'application/json': { schema: body.schema, example: body.example },
          ...(body.form && { 'application/x-www-form-urlencoded': { schema: body.schema, example: body.example } }),
        },
      },
    }),
    responses: presentResponses(operation),
  }
}

/** The parameters of a query, each with its example. */
function querySchema({ schema, example }: Asked) {
  const fields = Object.entries(schema.shape).map(([name, field]) => {
    const asked = field as z.ZodType
    return [name, example[name] === '' ? asked : asked.meta({ ...asked.meta(), examples: [example[name]] })]
  })
  return z.object(Object.fromEntries(fields))
}

function pathSchema(parameters: NonNullable<Operation['parameters']>) {
  const fields = Object.entries(parameters).map(([name, { description, example }]) => {
    return [name, z.string().meta({ description, examples: [example] })]
  })
  return z.object(Object.fromEntries(fields))
}

function presentResponses({ answer, otherAnswers = {}, ...operation }: Operation) {
  const refusals = Object.entries(messagesOf(operation)).filter(([, messages]) => messages.length > 0)
  return Object.fromEntries([
    ...(answer ? [['200', presentAnswer(answer)]] : []),
    ...refusals.map(([status, messages]) => [status, presentRefusals(Number(status), messages)]),
    ...Object.entries(otherAnswers).map(([status, other]) => [
      status,
      { ...presentAnswer(other), headers: HEADERS[Number(status)] },
    ]),
  ])
}

function presentAnswer(answer: Answered): ZodOpenApiResponseObject {
  const { description, schema, contentType = 'application/json', example, paged } = answer
  return {
    description,
    ...(paged && { headers: LINK }),
    content: { [contentType]: { schema: schema ?? { type: 'string' }, example } },
  }
}

function presentRefusals(status: number, messages: readonly string[]): ZodOpenApiResponseObject {
  const examples = messages.map((error, index) => [`${slugOf(error)}-${index + 1}`, { value: { error } }])
  return {
    description: TITLES[status] ?? 'An error',
    ...(HEADERS[status] && { headers: HEADERS[status] }),
    content: { 'application/json': { schema: errorShape, examples: Object.fromEntries(examples) } },
  }
}

const slugOf = (message: string) =>
  message
    .replaceAll(/[^A-Za-z0-9]+/g, '-')
    .slice(0, 60)
    .replaceAll(/^-|-$/g, '')

/** Every message of every status: what the operation says itself, and what all of its sort can answer with. */
function messagesOf(operation: Omit<Operation, 'answer'>): Record<number, readonly string[]> {
  const { caller, query, body, refusals = {}, failure, selfContained } = operation
  const sort: Record<number, readonly string[]> = {
    400: [
      ...problemsOfAsked(query, true),
      ...problemsOfAsked(body, false),
      ...(body ? BODY_MESSAGES : []),
      ...(body?.form ? ['the body is not UTF-8'] : []),
    ],
    401: UNAUTHENTICATED[caller],
    403: caller === 'employer' ? ['employer role required', OTHER_PROVIDER] : [],
    413: body ? ['the body is larger than 256 KiB'] : [],
    415: body ? [body.form ? NEITHER_JSON_NOR_FORM : 'the body must be application/json'] : [],
    500: [failure ?? 'internal error'],
    503: selfContained || failure ? [] : ['the database cannot be reached'],
  }
  const statuses = [...new Set([...Object.keys(sort), ...Object.keys(refusals)])].map(Number)
  return Object.fromEntries(
    statuses.map((status) => [status, [...new Set([...(refusals[status] ?? []), ...(sort[status] ?? [])])]]),
  )
}

function problemsOfAsked(asked: Asked | undefined, textOnly: boolean): string[] {
  return asked
    ? [...(asked.messages ?? []), ...problemsOf(asked.parsedBy ?? asked.schema, asked.example, { textOnly })]
    : []
}
