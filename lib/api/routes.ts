import { z } from 'zod'
import type { Session } from '#lib/auth/session.ts'
import { ignoreBody, readJson, readJsonOrForm, readQuery } from '#lib/http/body.ts'
import { shareSlots } from '#lib/http/fairness.ts'
import { requireRequestLeft, requireUserRequestLeft } from '#lib/http/request-limit.ts'
import { configuredService } from '#lib/server/missing-variables.ts'
import type { Service } from '#lib/server/services.ts'
import { admit, authenticate, identify } from './caller.ts'
import { handleOnce, type IdempotentContext, readIdempotencyKey } from './idempotency.ts'
import { ApiResponse, type Operation } from './operation.ts'
import { type Handler, type Method, type ResourceOptions, resource } from './resource.ts'

/** The second argument of a Next route handler: the decoded path parameters. */
interface RouteContext {
  params?: Promise<Record<string, string>>
}

/**
 * The route handlers of the operations declared for `path`.
 * @param path as operations declare it, such as `/batches/{id}`
 */
export function routes(path: string, operations: readonly Operation[]) {
  const declared = operations.filter((operation) => operation.path === path)
  if (declared.length === 0) throw new Error(`no operation is declared for ${path}`)
  const handlers = declared.map((operation) => [operation.method, handlerOf(operation)] as const)
  const readers = declared.find((operation) => operation.readers)?.readers
  const { failure, advice } = declared.find((operation) => operation.failure) ?? {}
  const deprecations = Object.fromEntries(
    declared.flatMap(({ method, deprecated }) => (deprecated ? [[method, deprecated]] : [])),
  )
  const fixed = { ...(failure && { failure }), ...(advice && { advice }) }
  const options: ResourceOptions = { route: path, ...(readers && { readers }), deprecations, ...fixed }
  return resource(Object.fromEntries(handlers) as Partial<Record<Method, Handler<unknown>>>, options)
}

/** Checks in this order: 401, 403 for a role, 501, then 413, 415 and 400, then the handler's own checks. */
function handlerOf(operation: Operation): Handler<unknown> {
  return async (request, context) => {
    // The limit is checked first, so that a flood of requests costs as little as possible.
    if (operation.refusals?.includes('rate-limited'))
      requireRequestLeft(request.headers, operation.group === 'Archive' ? 'archive' : 'session')
    const running = await configuredService()
    const params = (await (context as RouteContext | undefined)?.params) ?? {}
    const session = await authenticate(operation.caller, running, request)
    const answer = () => respond(operation, { running, request, session, params })
    // A page of the archive is the most expensive request that a caller without a session can make.
    if (operation.group === 'Archive') return await shareSlots('archive', answer)
    if (session === undefined) return await answer()
    const user = `${session.kind} ${session.sub}`
    requireUserRequestLeft(user)
    return operation.waitsForLedger ? await answer() : await shareSlots(user, answer)
  }
}

interface RequestContext {
  running: Service
  request: Request
  session: Session | undefined
  params: Record<string, string>
}

async function respond(operation: Operation, { running, request, session, params }: RequestContext): Promise<Response> {
  const principal = await identify(operation.caller, running, session, params)
  const ready = await operation.requires?.(running, principal)
  const query = operation.query && readQuery(request, operation.query.schema)
  const key = operation.idempotent && readIdempotencyKey(request)
  const body = await readBody(request, operation, principal)
  const admitted = await admit(operation.caller, running, principal)
  const { settings, confidentialAccounts: accounts } = running
  const base = { service: running, settings, accounts, now: running.now(), request, params, query, body, ready }
  const context = { ...admitted, ...base }
  const answer =
    key === undefined ? operation.handle(context) : handleOnce(operation, context as object as IdempotentContext, key)
  return present(await answer, operation.response?.contentType)
}

async function readBody(request: Request, operation: Operation, principal: object): Promise<unknown> {
  const { body, caller } = operation
  if (!body) return await ignoreBody(request)
  if (body.form) return await readJsonOrForm(request, body.schema)
  const permitted = z.unknown().transform((value) => {
    operation.permits?.(principal, value)
    return value
  })
  return await readJson(request, permitted.pipe(body.schema), { isOpen: caller === 'anybody' })
}

function present(result: unknown, contentType: string | undefined): Response {
  if (result instanceof Response) return result
  const { body, status, headers } = result instanceof ApiResponse ? result : new ApiResponse(result)
  if (contentType === undefined) return Response.json(body, { status, headers })
  headers.set('Content-Type', contentType)
  return new Response(String(body), { status, headers })
}
