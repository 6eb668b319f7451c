import { rpc } from '@stellar/stellar-sdk'
import { ledgerUnreachable } from './ledger-error.ts'

/** Codes of a connection that ended before a response. */
const ENDED: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'])

/** Whether a request failed because its connection ended: a server closes idle ones, often just as they are used again. */
function hasEnded(error: unknown): boolean {
  // The SDK's HTTP client drops the cause of a request without a response; one that took too long has a code.
  const { config, code, response } = Object(error) as { config?: unknown; code?: unknown; response?: unknown }
  if (config !== undefined && code === undefined && response === undefined) return true
  for (let cause = error; typeof cause === 'object' && cause !== null; cause = (cause as { cause?: unknown }).cause) {
    if ('code' in cause && ENDED.has(cause.code)) return true
  }
  return false
}

/** Repeats a request once whose connection ended before a response. */
export const repeatOnce = <Answer>(request: () => Promise<Answer>): Promise<Answer> =>
  request().catch((error: unknown) => {
    if (hasEnded(error)) return request()
    throw error
  })

/** The SDK's client of an RPC, whose calls survive a connection that was idle for too long. */
export function openRpcServer(rpcUrl: string): rpc.Server {
  const server = new rpc.Server(rpcUrl, { allowHttp: rpcUrl.startsWith('http:') })
  const post = server.httpClient.post.bind(server.httpClient)
  // A submission that got no response may have been accepted: its caller looks it up.
  server.httpClient.post = (...call) =>
    methodOf(call[1]) === 'sendTransaction' ? post(...call) : repeatOnce(() => post(...call))
  return server
}

/** How many ledgers a node may lag. */
export const LAG = 10

/** How often, and at which intervals (ms), a client asks for a response that is not older. */
const READINGS = 40
const READING_MS = 250

/**
 * A client's RPC: behind one address, some nodes lag. A response that is older than an earlier one is read again, so that what has
 * been seen once is not gone with the next request. After ten seconds an old response has to do. Calls throw LedgerError
 * `unavailable`, also for JSON-RPC errors, which the SDK throws as plain objects.
 */
export function openClientRpc(rpcUrl: string): rpc.Server {
  const server = openRpcServer(rpcUrl)
  const post = server.httpClient.post.bind(server.httpClient)
  let highest = 0
  server.httpClient.post = async <Body>(...call: Parameters<typeof post>) => {
    const isSubmission = methodOf(call[1]) === 'sendTransaction'
    for (let reading = 1; ; reading += 1) {
      const response = await post<Body>(...call).catch((error: unknown) => {
        throw ledgerUnreachable(error)
      })
      const body: JsonRpcBody = Object(response.data)
      // A submission is repeated only if the node has refused it.
      const latest = isSubmission && body.result?.status !== 'ERROR' ? undefined : latestIn(body)
      const isBehind = latest !== undefined && latest < highest && latest >= highest - LAG
      // The highest number was a mistake, or the network has started over, if a response is far below it or no node reaches it.
      if (latest !== undefined && (!isBehind || reading === READINGS)) highest = latest
      if (!isBehind || reading === READINGS) {
        if (body.error) throw ledgerUnreachable(body.error)
        return response
      }
      await new Promise((resolve) => setTimeout(resolve, READING_MS))
    }
  }
  return server
}

const methodOf = (request: unknown) => (request as { method?: unknown } | undefined)?.method

interface JsonRpcBody {
  result?: { status?: unknown; latestLedger?: unknown } | null
  error?: { message?: unknown }
}

/** The latest ledger that a JSON-RPC response names; an error does so if it has not closed a requested ledger yet. */
function latestIn({ result, error }: JsonRpcBody): number | undefined {
  const { latestLedger } = result ?? {}
  if (typeof latestLedger === 'number') return latestLedger
  const [, named] = /(?:ledger range: \d+ - |latest ledger: )(\d+)/.exec(String(error?.message)) ?? []
  return named === undefined ? undefined : Number(named)
}
