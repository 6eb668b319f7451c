/**
 * The Content-Security-Policy of a page: it runs scripts that carry `nonce`, and the scripts that those load. Markup that
 * an attacker injects runs no script, and no other site can frame the page. In development, React calls
 * `eval` to reconstruct server stack traces, and Next injects inline styles.
 */
export function contentSecurityPolicy(nonce: string, isDevelopment = false): string {
  return [
    "default-src 'self'",
    `script-src 'self' 'nonce-${nonce}' 'strict-dynamic'${isDevelopment ? " 'unsafe-eval'" : ''}`,
    `style-src 'self' ${isDevelopment ? "'unsafe-inline'" : `'nonce-${nonce}'`}`,
    // Charts set colours in style attributes, which cannot load anything.
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

/** Makes browsers use HTTPS only if PUBLIC_URL is HTTPS. RFC 6797 §7.2 forbids the header over plain HTTP. */
export function requireHttps(headers: Headers, publicUrl: string | undefined): void {
  if (publicUrl?.startsWith('https:')) headers.set('Strict-Transport-Security', STRICT_TRANSPORT_SECURITY)
}
