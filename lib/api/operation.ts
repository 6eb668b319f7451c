import type { z } from 'zod'
import type { RecordedOutcome } from '#drizzle/schema/idempotency.ts'
import type { IdempotentRequest } from '#lib/db/idempotency.ts'
import { linkTo, type Page } from '#lib/db/paging.ts'
import type { RefusalCode } from '#lib/refusal/refusal.ts'
import type { Service } from '#lib/server/services.ts'
import type { CallerName, Principal } from './caller.ts'
import type { Deprecation, Method } from './resource.ts'

/** The sections of the reference, in order. */
export const GROUPS = {
  Sessions: 'Signing in with a wallet (SEP-10) or with an access token of an identity provider.',
  Transfers: 'Sponsoring a confidential transfer (CAP-15): the sender pays no network fee.',
  Contractors: 'The directory of payees. It holds public data only, never a secret.',
  Batches: 'Disbursements, their payouts and their progress.',
  Events: 'What has happened, for programs: ids and statuses, in order, without an amount or a name.',
  Webhooks: 'Events, posted to the employer’s own systems and signed by the Standard Webhooks specification.',
  Me: 'The caller and its roles.',
  Funding: 'Test funds, and the vault that backs the confidential balances.',
  Relay: 'Batches that the headless relay pays from its own channel accounts.',
  Archive: 'The token’s events, kept for longer than a public RPC keeps them: a wallet needs them to spend.',
  'On your device': 'Operations that need a key which never leaves the user’s device. The response is always 501.',
  Service: 'Health, metrics, chores and this document.',
} as const

/** A method and a path relative to the base address, with `{name}` for a parameter: `GET /batches/{id}`. */
type Route = `${Method} /${string}`

/** The names of the parameters in a route. */
type ParameterNames<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParameterNames<Rest>
  : never

/** A body or query: the schema that parses it, and an example that names every field. */
export interface RequestSpec<Schema extends z.ZodType> {
  schema: Schema
  /** the schema for the OpenAPI document, if the verb itself parses some of the fields */
  docsSchema?: z.ZodType
  example: Record<string, unknown>
  /** whether the body may also be a form */
  form?: true
}

/** The 200 of an operation. */
export interface ResponseSpec<Shape extends z.ZodType> {
  description: string
  schema: Shape
  /** for a response that is text instead of JSON */
  contentType?: string
  example: unknown
  /** whether it may have a Link to the next page, or that and X-Total-Count */
  paged?: 'link' | 'link and total'
  /** whether it has an ETag, and a request with If-None-Match may get a 304 */
  cached?: true
}

/** A JSON response with a specific status or headers. */
export class ApiResponse<Body> {
  readonly body: Body
  readonly status: number
  readonly headers: Headers

  constructor(body: Body, { status = 200, headers = {} }: { status?: number; headers?: HeadersInit } = {}) {
    this.body = body
    this.status = status
    this.headers = new Headers(headers)
  }
}

/** A response with a Link to the next page and X-Total-Count, if the page has them. */
export function respondWithPage<Body>(request: Request, { next, total }: Page<unknown>, body: Body): ApiResponse<Body> {
  const headers = new Headers()
  if (next) headers.set('Link', linkTo(request, next))
  if (total !== undefined) headers.set('X-Total-Count', String(total))
  return new ApiResponse(body, { headers })
}

/** The input of a handler: the service, the caller and the parsed request. Verbs take it as their context. */
export type Context<
  Path extends Route,
  Caller extends CallerName,
  Query extends z.ZodType,
  Body extends z.ZodType,
  Ready,
> = Principal<Caller> & {
  service: Service
  settings: Service['settings']
  /** looks up confidential accounts */
  accounts: Service['confidentialAccounts']
  now: Date
  request: Request
  params: Record<ParameterNames<Path>, string>
  query: z.output<Query>
  body: z.output<Body>
  /** the result of `requires` */
  ready: Ready
  /** of an `idempotent` operation, if the request has an Idempotency-Key */
  once?: IdempotentRequest
}

interface OperationDocs<Path extends Route> {
  id: string
  route: Path
  summary: string
  description?: string
  /** not in the specification of the API */
  extension?: true
  /** what releases will no longer have: docs/releases.md */
  deprecated?: Deprecation
  /** a description of each parameter of the path */
  parameters?: Record<ParameterNames<Path>, { description: string; example: string }>
  /** the role that the verb itself requires, unless the kind of caller implies it */
  role?: 'employer'
  /** the codes that caller, body and query do not imply */
  refusals?: readonly RefusalCode[]
  /** the message of every 500 and 503, both of which become a 500 */
  failure?: string
  /** the next step after a 500 `unavailable` of an operation with `failure` */
  advice?: string
  /** the origins whose pages may read the responses, instead of CORS_ORIGINS */
  readers?: 'everybody'
  /** whether it waits for ledgers to close, and so uses none of the user's slots */
  waitsForLedger?: true
  /** whether it needs neither database nor ledger */
  selfContained?: true
}

/** One method of one path. The route, the OpenAPI document and the typed client are derived from it. */
interface Declaration<
  Path extends Route,
  Caller extends CallerName,
  Query extends z.ZodType,
  Body extends z.ZodType,
  Shape extends z.ZodType,
  Ready,
> extends OperationDocs<Path> {
  caller: Caller
  query?: RequestSpec<Query>
  body?: RequestSpec<Body>
  /**
   * Runs before the body is read, and returns the context's `ready`.
   * @throws Refusal 501 if a feature is not configured, or the session is not a wallet's
   */
  requires?(service: Service, principal: Principal<Caller>): Ready | Promise<Ready>
  /** Runs before the fields of the body are parsed. @throws Refusal 403 if the caller's role may not send one of them */
  permits?(principal: Principal<Caller>, body: unknown): void
  /**
   * Presents the response of an earlier request again, from what its SQL transaction recorded (`transactOnce`), as the rows are now.
   * With it, the operation takes an Idempotency-Key. Its caller needs a user.
   */
  idempotent?(context: Context<Path, Caller, Query, Body, Ready>, outcome: RecordedOutcome): Promise<z.input<Shape>>
  response?: ResponseSpec<Shape>
  /** further responses that are not refusals, by status */
  otherResponses?: Record<number, ResponseSpec<Shape>>
  handle(
    context: Context<Path, Caller, Query, Body, Ready>,
  ): Promise<z.input<Shape> | ApiResponse<z.input<Shape>> | Response>
}

type AnyDeclaration = Declaration<Route, CallerName, z.ZodType, z.ZodType, z.ZodType, unknown>

/** A declaration in the list of all operations, with its types widened. */
export interface Operation
  extends Omit<AnyDeclaration, 'route' | 'parameters' | 'requires' | 'permits' | 'idempotent' | 'handle'> {
  method: Method
  path: string
  /** its section of the reference */
  group: keyof typeof GROUPS
  parameters?: Record<string, { description: string; example: string }>
  requires?(service: Service, principal: object): unknown
  permits?(principal: object, body: unknown): void
  idempotent?(context: object, outcome: RecordedOutcome): Promise<unknown>
  handle(context: object): Promise<unknown>
}

export function operation<
  const Path extends Route,
  Caller extends CallerName,
  Shape extends z.ZodType = z.ZodNever,
  Query extends z.ZodType = z.ZodUndefined,
  Body extends z.ZodType = z.ZodUndefined,
  Ready = undefined,
>({ route, ...declaration }: Declaration<Path, Caller, Query, Body, Shape, Ready>): Omit<Operation, 'group'> {
  const [method, path] = route.split(' ')
  // `routes` passes the context that the declaration's types require.
  return { ...declaration, method, path } as unknown as Operation
}

/** Puts operations into a section of the reference. */
export function inGroup(group: Operation['group'], operations: readonly Omit<Operation, 'group'>[]): Operation[] {
  return operations.map((declaration) => ({ ...declaration, group }))
}
