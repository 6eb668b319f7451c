import { ignoreBody, readJson, readJsonOrForm, readQuery } from '#lib/http/body.ts'
import { requireRequestLeft } from '#lib/http/request-limit.ts'
import { configuredService } from '#lib/server/missing-variables.ts'
import { admit, identify } from './caller.ts'
import { Answer, type Operation } from './operation.ts'
import { type Handler, type Method, type ResourceOptions, resource } from './resource.ts'

/** The argument that Next passes to a handler: the parameters of the path by name, decoded. */
interface RouteContext {
  params?: Promise<Record<string, string>>
}

/**
 * The handlers of a path: those of `operations` that are declared for it.
 * @param path as the operations write it, such as `/batches/{id}`
 */
export function routes(path: string, operations: readonly Operation[]) {
  const own = operations.filter((operation) => operation.path === path)
  if (own.length === 0) throw new Error(`no operation is declared for ${path}`)
  const handlers = own.map((operation) => [operation.method, handlerOf(operation)] as const)
  const readers = own.find((operation) => operation.readers)?.readers
  const failure = own.find((operation) => operation.failure)?.failure
  const options: ResourceOptions = { route: path, ...(readers && { readers }), ...(failure && { failure }) }
  return resource(Object.fromEntries(handlers) as Partial<Record<Method, Handler<unknown>>>, options)
}

/** Refuses in the order: 401, 403 for a role, 501, then 413, 415 and 400, then what the handler finds. */
function handlerOf(operation: Operation): Handler<unknown> {
  return async (request, context) => {
    // The limit comes first, so that a client that asks without end costs as little as possible.
    if (operation.refusals?.includes('rate-limited'))
      requireRequestLeft(request.headers, operation.group === 'Archive' ? 'archive' : 'session')
    const running = await configuredService()
    const params = (await (context as RouteContext | undefined)?.params) ?? {}
    const known = await identify(operation.caller, running, request, params)
    const ready = operation.requires?.(running, known)
    const query = operation.query && readQuery(request, operation.query.schema)
    const body = await readBody(request, operation)
    const admitted = await admit(operation.caller, running, known)
    const { settings, confidentialAccounts: accounts } = running
    const given = { service: running, settings, accounts, now: running.now(), request, params, query, body, ready }
    return present(await operation.handle({ ...admitted, ...given }), operation.answer?.contentType)
  }
}

async function readBody(request: Request, { body, caller }: Operation): Promise<unknown> {
  if (!body) return await ignoreBody(request)
  if (body.form) return await readJsonOrForm(request, body.schema)
  return await readJson(request, body.schema, { isOpen: caller === 'anybody' })
}

function present(answered: unknown, contentType: string | undefined): Response {
  if (answered instanceof Response) return answered
  const { body, status, headers } = answered instanceof Answer ? answered : new Answer(answered)
  if (contentType === undefined) return Response.json(body, { status, headers })
  headers.set('Content-Type', contentType)
  return new Response(String(body), { status, headers })
}
