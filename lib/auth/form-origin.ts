import { isLoopback } from '#lib/config/shapes.ts'

/**
 * Whether a page of this service sent the form, as the browser's headers say. A form on another site would act with the
 * operator's cookies (CSRF). The origin is compared with the configured one, since a proxy may change `Host` and
 * `X-Forwarded-Host`.
 * @param publicUrl the origin of this service
 */
export function isOwnForm(headers: Headers, publicUrl: string): boolean {
  const origin = headers.get('origin')
  // `null` is also what an own page sends where a proxy sets the referrer policy `no-referrer`.
  if (origin !== null && origin !== 'null') return isOwnOrigin(origin, publicUrl)
  const site = headers.get('sec-fetch-site')
  if (site !== null) return site === 'same-origin'
  return isOwnOrigin(headers.get('referer'), publicUrl)
}

function isOwnOrigin(address: string | null, publicUrl: string): boolean {
  const [given, own] = [URL.parse(address ?? ''), new URL(publicUrl)]
  if (!given || given.protocol !== own.protocol || given.port !== own.port) return false
  return given.hostname === own.hostname || (isLoopback(given.hostname) && isLoopback(own.hostname))
}
