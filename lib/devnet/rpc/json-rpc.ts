/** An answer with an error object; the HTTP status stays 200. */
export class RpcError extends Error {
  readonly code: number
  constructor(code: number, message: string) {
    super(message)
    this.name = 'RpcError'
    this.code = code
  }
}

export const invalidRequest = (message: string) => new RpcError(-32600, message)
export const invalidParams = (message: string) => new RpcError(-32602, message)

export type Params = Readonly<Record<string, unknown>>
export type Method = (params: Params) => object

/** Answers one JSON-RPC 2.0 request or a batch of them. Undefined: nothing but notifications, hence no answer. */
export function answer(text: string, methods: Readonly<Record<string, Method>>): object | undefined {
  let request: unknown
  try {
    request = JSON.parse(text)
  } catch {
    return errorAnswer(null, new RpcError(-32700, 'Parse error'))
  }
  if (!Array.isArray(request)) return answerOne(request, methods)
  if (request.length === 0) return errorAnswer(null, invalidRequest('empty request batch'))
  const answers = request.flatMap((one) => answerOne(one, methods) ?? [])
  return answers.length > 0 ? answers : undefined
}

function answerOne(request: unknown, methods: Readonly<Record<string, Method>>): object | undefined {
  if (!isObject(request)) return errorAnswer(null, invalidRequest('request is not an object'))
  const { jsonrpc, id, method, params } = request
  const name = isId(id) ? id : null
  try {
    if (jsonrpc !== '2.0') throw invalidRequest('invalid version marker')
    if (typeof method !== 'string' || !isId(id ?? null)) throw invalidRequest('invalid request')
    const run = Object.hasOwn(methods, method) ? methods[method] : undefined
    if (!run) throw new RpcError(-32601, `no such method "${method}"`)
    const result = run(readParams(params))
    return id === undefined ? undefined : { jsonrpc: '2.0', id: name, result }
  } catch (cause) {
    if (!(cause instanceof RpcError)) console.error(cause)
    const error = cause instanceof RpcError ? cause : new RpcError(-32603, 'internal error')
    return id === undefined && jsonrpc === '2.0' ? undefined : errorAnswer(name, error)
  }
}

function errorAnswer(id: string | number | null, { code, message }: RpcError): object {
  return { jsonrpc: '2.0', id, error: { code, message } }
}

/** No arguments may be null, absent or {}. */
function readParams(params: unknown): Params {
  if (params === undefined || params === null) return {}
  if (isObject(params)) return params
  throw invalidParams('params must be an object')
}

const isId = (id: unknown): id is string | number | null =>
  id === null || typeof id === 'string' || typeof id === 'number'

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
