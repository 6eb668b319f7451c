import type { z } from 'zod'
import { linkTo, type Page } from '#lib/db/paging.ts'
import type { RefusalCode } from '#lib/refusal/refusal.ts'
import type { Service } from '#lib/server/services.ts'
import type { CallerName, Known } from './caller.ts'
import type { Method } from './resource.ts'

/** The groups of the reference, in their order. */
export const GROUPS = {
  Sessions: 'Signing in with a wallet (SEP-10) or with an access token of an identity provider.',
  Transfers: 'Sponsoring a confidential transfer (CAP-15): the sender pays no network fee.',
  Contractors: 'The directory of those who are paid: public data only, never a secret.',
  Batches: 'Disbursements, their payouts, and how far they have come.',
  Me: 'Who the caller is, and in which roles.',
  Funding: 'Test funds, and what backs the confidential balances.',
  Relay: 'Batches that the headless relay pays from accounts of its own.',
  Archive: 'The token’s events, kept for longer than a public RPC keeps them: a wallet needs them to spend.',
  'On your device': 'Operations that need a key which never leaves the user’s device: they always answer 501.',
  Service: 'Whether the service is well, and this document.',
} as const

/** A method and a path below the base address, with `{name}` for a parameter: `GET /batches/{id}`. */
type Route = `${Method} /${string}`

/** The names of the parameters in a route. */
type ParameterNames<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParameterNames<Rest>
  : never

/** A body or a query: the schema that the request is parsed with, and an example that names every field. */
export interface Asked<Schema extends z.ZodType> {
  schema: Schema
  /** the schema for the document, if the one above leaves some fields for the verb to parse */
  documented?: z.ZodType
  example: Record<string, unknown>
  /** whether the body may come as a form, too */
  form?: true
}

/** The 200 of an operation. */
export interface Answered<Shape extends z.ZodType> {
  description: string
  schema: Shape
  /** for an answer that is text, and not JSON */
  contentType?: string
  example: unknown
  /** whether it may have a Link to the next page, and X-Total-Count as well */
  paged?: 'link' | 'link and total'
  /** whether it has an ETag, and a request with If-None-Match may get a 304 */
  cached?: true
}

/** An answer with a status or headers of its own. */
export class Answer<Body> {
  readonly body: Body
  readonly status: number
  readonly headers: Headers

  constructor(body: Body, { status = 200, headers = {} }: { status?: number; headers?: HeadersInit } = {}) {
    this.body = body
    this.status = status
    this.headers = new Headers(headers)
  }
}

/** The answer that is `body`, with a link to the next page and the number of all records where they are known. */
export function answerPage<Body>(request: Request, { next, total }: Page<unknown>, body: Body): Answer<Body> {
  const headers = new Headers()
  if (next) headers.set('Link', linkTo(request, next))
  if (total !== undefined) headers.set('X-Total-Count', String(total))
  return new Answer(body, { headers })
}

/** The input of a handler: the service, the caller, and the parsed request. Verbs take it as it is. */
export type Context<
  Path extends Route,
  Caller extends CallerName,
  Query extends z.ZodType,
  Body extends z.ZodType,
  Ready,
> = Known<Caller> & {
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
}

interface Told<Path extends Route> {
  id: string
  route: Path
  summary: string
  description?: string
  /** not in the specification of the interface */
  extension?: true
  /** a description of each parameter of the path */
  parameters?: Record<ParameterNames<Path>, { description: string; example: string }>
  /** the role that the verb itself requires, where the kind of caller does not imply it */
  role?: 'employer'
  /** the codes that the caller, body and query do not imply */
  refusals?: readonly RefusalCode[]
  /** the fixed message of every failure: what would be a 500 or a 503 is answered as a 500 with it */
  failure?: string
  /** the origins whose pages may read the answers, in place of those that CORS_ORIGINS names */
  readers?: 'everybody'
  /** whether it works without database and ledger */
  selfContained?: true
}

/** One method of one path. The route, the document and the typed client follow from it. */
interface Declaration<
  Path extends Route,
  Caller extends CallerName,
  Query extends z.ZodType,
  Body extends z.ZodType,
  Shape extends z.ZodType,
  Ready,
> extends Told<Path> {
  caller: Caller
  query?: Asked<Query>
  body?: Asked<Body>
  /**
   * Runs before the body is read; what it returns is `ready`.
   * @throws Refusal 501 if something is not configured, or the session is not that of a wallet
   */
  requires?(service: Service, known: Known<Caller>): Ready
  answer?: Answered<Shape>
  /** further answers with a body of their own, by status */
  otherAnswers?: Record<number, Answered<Shape>>
  handle(
    context: Context<Path, Caller, Query, Body, Ready>,
  ): Promise<z.input<Shape> | Answer<z.input<Shape>> | Response>
}

type AnyDeclaration = Declaration<Route, CallerName, z.ZodType, z.ZodType, z.ZodType, unknown>

/** A declaration as the list of all operations holds it: its own types have been checked, and are widened here. */
export interface Operation extends Omit<AnyDeclaration, 'route' | 'parameters' | 'requires' | 'handle'> {
  method: Method
  path: string
  /** its group in the reference */
  group: keyof typeof GROUPS
  parameters?: Record<string, { description: string; example: string }>
  requires?(service: Service, known: object): unknown
  handle(context: object): Promise<unknown>
}

/** Declares an operation. */
export function operation<
  const Path extends Route,
  Caller extends CallerName,
  Shape extends z.ZodType = z.ZodNever,
  Query extends z.ZodType = z.ZodUndefined,
  Body extends z.ZodType = z.ZodUndefined,
  Ready = undefined,
>({ route, ...declaration }: Declaration<Path, Caller, Query, Body, Shape, Ready>): Omit<Operation, 'group'> {
  const [method, path] = route.split(' ')
  // The handler's context is wider than `object` says; `routes` fills it as the declaration asks.
  return { ...declaration, method, path } as unknown as Operation
}

/** Operations of one group of the reference. */
export function inGroup(group: Operation['group'], operations: readonly Omit<Operation, 'group'>[]): Operation[] {
  return operations.map((declared) => ({ ...declared, group }))
}
