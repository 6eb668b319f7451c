import type { rpc } from '@stellar/stellar-sdk'
import { z } from 'zod'
import { metrics } from '#lib/observability/metrics.ts'
import { ledgerUnreachable } from './ledger-error.ts'
import { openRpcServer, repeatOnce } from './rpc-server.ts'
import { type LedgerView, observeResult, openView } from './view.ts'

/** How long one RPC call may take. */
const CALL_TIMEOUT_MS = 5_000

export interface Network {
  /** `local` or `testnet` */
  name: string
  passphrase: string
  rpcUrl: string
  /** how often a waiting request polls the ledger, in milliseconds */
  pollMs: number
  server: rpc.Server
  /** what the responses show of the latest ledger */
  view: LedgerView
  /**
   * Makes one JSON-RPC call and parses its result by `schema`. Envelopes are sent as stored, without the SDK's classes.
   * @throws LedgerError `unavailable` for no response, an unusable one, or a JSON-RPC error
   */
  call<Schema extends z.ZodType>(
    method: string,
    params: Record<string, unknown>,
    schema: Schema,
  ): Promise<z.output<Schema>>
}

export function openNetwork(options: { name: string; passphrase: string; rpcUrl: string; pollMs: number }): Network {
  const server = openRpcServer(options.rpcUrl)
  // The SDK ignores the constructor's timeout option.
  server.httpClient.defaults.timeout = CALL_TIMEOUT_MS
  countCalls(server.httpClient)
  const network: Network = {
    ...options,
    server,
    // Looked up with each call: the network may be guarded by then.
    view: openView({ pollMs: options.pollMs, call: (...call) => network.call(...call) }),
    call: async (method, params, schema) => {
      try {
        const result = await counted(method, () => {
          const send = () => post(options.rpcUrl, method, params)
          return method === 'sendTransaction' ? send() : repeatOnce(send)
        })
        const parsed = schema.parse(result)
        observeResult(network.view, method, result)
        return parsed
      } catch (cause) {
        throw ledgerUnreachable(cause)
      }
    },
  }
  return network
}

async function counted<Answer>(method: string, call: () => Promise<Answer>): Promise<Answer> {
  metrics().rpcCalls.inc({ method })
  try {
    return await call()
  } catch (error) {
    metrics().rpcErrors.inc({ method })
    throw error
  }
}

/** The SDK's client sends every call by `post`, and treats a JSON-RPC error as a response. */
function countCalls(client: rpc.Server['httpClient']): void {
  const post = client.post.bind(client)
  client.post = async <Body>(url: string, data?: { method?: string }, config?: Parameters<typeof post>[2]) => {
    const method = data?.method ?? 'unknown'
    const response = await counted(method, () => post<Body>(url, data, config))
    const { data: answer } = response
    if (typeof answer === 'object' && answer !== null && 'error' in answer) metrics().rpcErrors.inc({ method })
    return response
  }
}

/** A JSON-RPC error response. `code` is JSON-RPC's: -32602 is invalid params. */
export class RpcError extends Error {
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.name = 'RpcError'
    this.code = code
  }
}

const ANSWER = z.object({
  result: z.unknown().optional(),
  error: z.object({ code: z.number(), message: z.string() }).optional(),
})

async function post(url: string, method: string, params: Record<string, unknown>): Promise<unknown> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    redirect: 'error',
    signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
  })
  if (!response.ok) throw new Error(`the RPC responded with status ${response.status}`)
  const { result, error } = ANSWER.parse(await response.json())
  if (error) throw new RpcError(error.code, error.message)
  return result
}

/** The RPC belongs to a network other than the configured one. */
export class ForeignNetwork extends Error {
  constructor(passphrase: string) {
    super(`the RPC belongs to another network: ${JSON.stringify(passphrase.slice(0, 100))}`)
    this.name = 'ForeignNetwork'
  }
}

/** A network that is not used until its RPC has returned the right passphrase. */
export interface GuardedNetwork extends Network {
  /**
   * Checks the RPC's passphrase until it was right once. @throws LedgerError `unavailable`; its cause is ForeignNetwork
   * if it is the wrong one
   */
  verify(): Promise<void>
}

const NETWORK = z.object({ passphrase: z.string() })

/**
 * Has a network request the RPC's passphrase before any other call. A signature is only valid on one network, but addresses and
 * balances of another network look like this one's.
 */
export function guardNetwork(network: Network): GuardedNetwork {
  const { call } = network
  let verified: Promise<void> | undefined

  async function ask(): Promise<void> {
    const { passphrase } = await call('getNetwork', {}, NETWORK)
    if (passphrase === network.passphrase) return
    throw ledgerUnreachable(new ForeignNetwork(passphrase))
  }

  function verify(): Promise<void> {
    verified ??= ask().catch((error: unknown) => {
      verified = undefined
      throw error
    })
    return verified
  }

  const { httpClient } = network.server
  const post = httpClient.post.bind(httpClient)
  httpClient.post = async (...request: Parameters<typeof post>) => {
    await verify()
    return await post(...request)
  }
  network.call = async (...request) => {
    await verify()
    return await call(...request)
  }
  return Object.assign(network, { verify })
}
