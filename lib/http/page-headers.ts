/**
 * The Content-Security-Policy of a page: scripts of our own origin that carry `nonce`, and what those load. An attacker
 * who can write into a page gets no script to run, and no other site can frame it.
 */
export function contentSecurityPolicy(nonce: string): string {
  return [
    "default-src 'self'",
    `script-src 'self' 'nonce-${nonce}' 'strict-dynamic'`,
    `style-src 'self' 'nonce-${nonce}'`,
    // Colours of charts stand in style attributes, which cannot load anything.
    "style-src-attr 'unsafe-inline'",
    "img-src 'self' data:",
    "object-src 'none'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; ')
}

/** Two years in seconds, as browsers' preload lists recommend. */
const STRICT_TRANSPORT_SECURITY = 'max-age=63072000; includeSubDomains'

/** Tells browsers to use HTTPS only, where PUBLIC_URL is HTTPS. RFC 6797 §7.2 forbids the header on plain HTTP. */
export function requireHttps(headers: Headers, publicUrl: string | undefined): void {
  if (publicUrl?.startsWith('https:')) headers.set('Strict-Transport-Security', STRICT_TRANSPORT_SECURITY)
}
