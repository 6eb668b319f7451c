import http, { type IncomingMessage } from 'node:http'
import https from 'node:https'
import type { DELIVERY_ERRORS } from '#drizzle/schema/webhooks.ts'
import { AddressRefused, type DestinationRules, guardedLookup, problemOfUrl } from './destination.ts'

export type DeliveryError = (typeof DELIVERY_ERRORS)[number]

/** What an endpoint responded. */
export interface Reply {
  /** undefined for a 2xx */
  error: DeliveryError | undefined
  status?: number
  /** the beginning of the body */
  text?: string
  /** seconds, of a 429 or 503 */
  retryAfter?: number
}

/** The time limit of a request, its response included. */
const TIMEOUT_MS = 10_000

/** How much of a response is read (bytes). */
const MAX_READ = 1_024

/**
 * Posts a body once, and follows no redirect. The rest of a long response is not read: the connection is destroyed.
 * @param stop ends the request, which then is a `timeout`
 */
export async function postTo(
  text: string,
  {
    rules,
    headers,
    body,
    stop,
    timeoutMs = TIMEOUT_MS,
  }: {
    rules: DestinationRules
    headers: Record<string, string>
    body: string
    stop?: AbortSignal | undefined
    timeoutMs?: number
  },
): Promise<Reply> {
  // The rules may have changed since the endpoint was added. A literal address is never looked up.
  if (problemOfUrl(rules, text) !== undefined) return { error: 'address-refused' }
  const url = new URL(text)
  const limit = AbortSignal.timeout(timeoutMs)
  const signal = stop ? AbortSignal.any([limit, stop]) : limit
  const { request } = url.protocol === 'https:' ? https : http
  const length = String(Buffer.byteLength(body))
  // No agent: each request has its own connection, so none is to an address that was looked up for another.
  const options = { method: 'POST', headers: { ...headers, 'content-length': length }, agent: false, signal } as const
  return await new Promise<Reply>((resolve) => {
    const sent = request(url, { ...options, lookup: guardedLookup(rules, url) })
    let hasResponse = false
    const fail = (error: DeliveryError) => {
      // Once the status is known, it decides, however the body ends.
      if (!hasResponse) resolve({ error })
    }
    sent.on('error', (cause) => fail(signal.aborted ? 'timeout' : errorOf(cause)))
    // A server may also switch protocols, and then there is neither a response nor an error.
    sent.on('close', () => fail('unreachable'))
    sent.on('response', async (response) => {
      hasResponse = true
      const beginning = await readBeginning(response)
      resolve(replyOf(response, beginning))
      sent.destroy()
    })
    sent.end(body)
  })
}

function errorOf(cause: NodeJS.ErrnoException): DeliveryError {
  if (cause instanceof AddressRefused) return 'address-refused'
  return /CERT|SELF_SIGNED|UNABLE_TO_|ERR_TLS|ERR_SSL|EPROTO/.test(cause.code ?? '') ? 'tls' : 'unreachable'
}

async function readBeginning(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of response) {
      chunks.push(chunk)
      length += chunk.length
      if (length >= MAX_READ) break
    }
  } catch {
    // The status is known, and says how it ended. What was read of the body has to do.
  }
  const text = Buffer.concat(chunks).subarray(0, MAX_READ).toString('utf8')
  // PostgreSQL cannot store NUL, and a terminal should not obey the others.
  return text.replaceAll(/\p{Cc}+/gu, ' ').trim()
}

function replyOf({ statusCode: status = 0, headers }: IncomingMessage, text: string): Reply {
  const reply = { status, text }
  if (status >= 200 && status < 300) return { ...reply, error: undefined }
  if (status >= 300 && status < 400) return { ...reply, error: 'redirect' }
  const retryAfter = status === 429 || status === 503 ? secondsIn(headers['retry-after']) : undefined
  return { ...reply, error: 'status', ...(retryAfter !== undefined && { retryAfter }) }
}

/** The seconds of a Retry-After header, which may also be a time (RFC 9110 §10.2.3). */
function secondsIn(header: string | undefined): number | undefined {
  if (header === undefined) return undefined
  if (/^\d{1,9}$/.test(header)) return Number(header)
  const at = Date.parse(header)
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - Date.now()) / 1000))
}
