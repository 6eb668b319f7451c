import { isLoopback } from '#lib/config/shapes.ts'
import { Refusal } from '#lib/refusal/refusal.ts'

export const PROVIDER_TIMEOUT_MS = 5_000
const LARGEST_DOCUMENT = 512 * 1024

/** Over plain HTTP an attacker on the network could replace the keys and then sign tokens for any user. */
export function requireSecure(address: string): URL {
  const url = new URL(address)
  if (!isSecure(url)) throw new Error('the address of a provider must use https')
  return url
}

/** Only a provider on this machine may be reached without TLS. */
export const isSecure = ({ protocol, hostname }: URL) =>
  protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname))

/** Sends a GET that follows no redirects and reads at most 512 KiB. */
export async function fetchCapped(
  address: string,
  {
    signal = AbortSignal.timeout(PROVIDER_TIMEOUT_MS),
    authorization,
  }: { signal?: AbortSignal; authorization?: string } = {},
): Promise<Response> {
  const headers = { accept: 'application/json', ...(authorization !== undefined && { authorization }) }
  const response = await fetch(address, { headers, redirect: 'error', signal })
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.length
    if (size > LARGEST_DOCUMENT) throw new Error('the response of the provider exceeds 512 KiB')
    chunks.push(chunk)
  }
  return new Response(Buffer.concat(chunks), { status: response.status })
}

export function unreachable(cause: unknown): Refusal {
  return new Refusal('unavailable', 'the identity provider cannot be reached', { cause, retryAfter: 10 })
}
