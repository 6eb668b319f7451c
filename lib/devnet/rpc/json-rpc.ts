import { describeFailure, log } from '#lib/observability/log.ts'

/** A response with an error object; the HTTP status is 200. */
export class RpcError extends Error {
  readonly code: number
  readonly data: unknown
  constructor(code: number, message: string, data?: unknown) {
    super(message)
    this.name = 'RpcError'
    this.code = code
    this.data = data
  }
}

const parseError = (message: string) => new RpcError(-32700, message)
export const invalidRequest = (message: string, data?: unknown) => new RpcError(-32600, message, data)
const methodNotFound = (method: string) => new RpcError(-32601, 'method not found', method)
export const invalidParams = (message: string) => new RpcError(-32602, message)
export const internalError = (message: string) => new RpcError(-32603, message)

/**
 * The error of Go's encoding/json for a value of the wrong type. `field` is, for instance,
 * `GetTransactionRequest.hash`.
 */
export function wrongType(value: unknown, field: string, type: string): RpcError {
  const data = `json: cannot unmarshal ${nameOfType(value)} into Go struct field ${field} of type ${type}`
  return new RpcError(-32602, 'invalid parameters', data)
}

function nameOfType(value: unknown): string {
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'boolean') return 'bool'
  const isCounted = typeof value === 'number' && (!Number.isInteger(value) || value < 0 || value > 0xffff_ffff)
  return isCounted ? `number ${value}` : typeof value
}

export type Params = Readonly<Record<string, unknown>>

export interface Method {
  readonly run: (params: Params) => object | Promise<object>
  /** names of positional parameters, in order; without them, a list is rejected */
  readonly positions?: readonly string[]
}

/** A body that isn't JSON. The real server responds outside JSON-RPC, with text and HTTP 500. */
export class UnreadableBody extends Error {}

const FIELDS = new Set(['jsonrpc', 'id', 'method', 'params'])

/**
 * Handles one JSON-RPC 2.0 request or a batch, like the real server's library. Returns undefined if there are only
 * notifications, which have no response.
 * @throws UnreadableBody
 */
export async function answer(text: string, methods: Readonly<Record<string, Method>>): Promise<object | undefined> {
  const request = parse(text)
  if (!Array.isArray(request)) {
    if (!isObject(request)) return errorAnswer(null, parseError('invalid request message'))
    return await answerOne(request, methods)
  }
  // Items that aren't objects are checked first: the real server finds them while it parses the batch.
  const unreadable = request.filter((one) => !isObject(one))
  const readable = request.filter((one) => isObject(one))
  const answers = unreadable.map(() => errorAnswer(null, parseError('request is not a JSON object')))
  for (const one of readable) {
    const answered = await answerOne(one, methods)
    if (answered) answers.push(answered)
  }
  return answers.length > 0 ? answers : undefined
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new UnreadableBody('[-32700] invalid request value')
  }
}

async function answerOne(request: Params, methods: Readonly<Record<string, Method>>): Promise<object | undefined> {
  const { jsonrpc, method, params } = request
  // A null id means no id: the request is a notification.
  const id = request.id ?? undefined
  try {
    if (jsonrpc !== '2.0') throw invalidRequest('invalid version marker')
    if (id !== undefined && typeof id !== 'string' && typeof id !== 'number') throw invalidRequest('invalid request ID')
    const extra = Object.keys(request).filter((name) => !FIELDS.has(name))
    if (extra.length > 0) throw invalidRequest('extra fields in request', extra)
    if (typeof method !== 'string' || method === '') throw invalidRequest('empty method name')
    const handler = Object.hasOwn(methods, method) ? methods[method] : undefined
    if (!handler) throw methodNotFound(method)
    const result = await handler.run(readParams(params, handler))
    return id === undefined ? undefined : { jsonrpc: '2.0', id, result }
  } catch (cause) {
    if (!(cause instanceof RpcError)) log('error', 'ledger rpc', { failure: describeFailure(cause) })
    if (id === undefined && jsonrpc === '2.0') return undefined
    const error = cause instanceof RpcError ? cause : internalError('internal error')
    return errorAnswer(typeof id === 'string' || typeof id === 'number' ? id : null, error)
  }
}

function errorAnswer(id: string | number | null, { code, message, data }: RpcError): object {
  return { jsonrpc: '2.0', id, error: { code, message, ...(data === undefined ? {} : { data }) } }
}

/** Empty parameters may be null, absent or {}. */
function readParams(params: unknown, { positions }: Method): Params {
  if (params === undefined || params === null) return {}
  if (isObject(params)) return params
  if (!Array.isArray(params)) throw invalidRequest('parameters must be array or object')
  if (!positions || params.length > positions.length) throw new RpcError(-32602, 'invalid parameters')
  return Object.fromEntries(params.map((value, index) => [positions[index] ?? '', value]))
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
