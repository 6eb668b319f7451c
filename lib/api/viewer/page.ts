import { requireHttps } from '#lib/http/page-headers.ts'
import { answerPrepared, type Prepared, prepare } from '#lib/http/prepared.ts'
import type { Service } from '#lib/server/services.ts'
import { loadViewer } from './files.ts'

const pages = new Map<string, Prepared>()

/** The viewer's page. It has no inline script, so its policy can forbid them. */
export async function referencePage(request: Request, { settings }: Service): Promise<Response> {
  const { version } = await loadViewer()
  // Test sessions need an issuer that gives a token to every visitor. Only the embedded ledger's issuer does.
  const issuer = settings.testIssuer
  const key = `${version} ${issuer}`
  const page = pages.get(key) ?? prepare(pageText(version, issuer), 'text/html; charset=utf-8')
  pages.set(key, page)
  const headers = new Headers({ 'Cache-Control': 'no-cache', 'Content-Security-Policy': policy(issuer) })
  requireHttps(headers, settings.publicUrl)
  return answerPrepared(request, page, headers)
}

function policy(issuer: string | undefined): string {
  const connect = issuer === undefined ? "'self'" : `'self' ${new URL(issuer).origin}`
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "style-src-attr 'unsafe-inline'",
    "img-src 'self' data:",
    `connect-src ${connect}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

function pageText(version: string, issuer: string | undefined): string {
  const file = (name: string) => `/docs/${version}/${name}`
  const testing = `
    <section class="test-session" aria-labelledby="test-session">
      <h2 id="test-session">Test session</h2>
      <p>This service runs its own test ledger. Each button creates a throwaway user in this browser and signs in.</p>
      <p>
        <button type="button" data-kind="ledger">Sign in with a new wallet</button>
        <button type="button" data-kind="idp">Sign in with an email</button>
      </p>
      <p role="status"></p>
    </section>`
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>API reference · Confidential payroll</title>
    <link rel="icon" href="/icon.svg" type="image/svg+xml">
    <link rel="stylesheet" href="${file('swagger-ui.css')}">
    <link rel="stylesheet" href="${file('viewer.css')}">
  </head>
  <body data-issuer="${issuer ?? ''}">
    <div>
      <header>
        <p class="way-back"><a href="/">Confidential payroll</a></p>
        <h1 class="page-title">API reference</h1>
      </header>${issuer === undefined ? '' : testing}
      <div id="viewer"></div>
      <noscript><p>The reference needs JavaScript. The document itself is at <a href="/api/openapi.json">/api/openapi.json</a>.</p></noscript>
    </div>
    <script src="${file('swagger-ui-bundle.js')}" defer></script>
    <script src="${file('viewer.js')}" type="module"></script>
    ${issuer === undefined ? '' : `<script src="${file('test-session.js')}" type="module"></script>`}
  </body>
</html>
`
}
