import { isLoopback } from '#lib/config/shapes.ts'

/**
 * Whether, by the browser's headers, a page of this service sent the form: another site's form would act with the
 * operator's cookies (CSRF). Compares the origin with the configured one, because a proxy may change `Host`.
 * @param publicUrl the origin of this service
 */
export function isOwnForm(headers: Headers, publicUrl: string): boolean {
  const origin = headers.get('origin')
  // This service's own pages also send `null` if a proxy sets the referrer policy `no-referrer`.
  if (origin !== null && origin !== 'null') return isOwnOrigin(origin, publicUrl)
  const site = headers.get('sec-fetch-site')
  if (site !== null) return site === 'same-origin'
  return isOwnOrigin(headers.get('referer'), publicUrl)
}

function isOwnOrigin(address: string | null, publicUrl: string): boolean {
  const [url, own] = [URL.parse(address ?? ''), new URL(publicUrl)]
  if (!url || url.protocol !== own.protocol || url.port !== own.port) return false
  return url.hostname === own.hostname || (isLoopback(url.hostname) && isLoopback(own.hostname))
}
