import { OPERATIONS } from '#lib/api/interface.ts'

/** The bytes of a request, in latin1. With `hangUpMs`, the client hangs up after that time. */
export interface FuzzedRequest {
  bytes: string
  hangUpMs?: number
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'TRACE', 'PROPFIND', 'CONNECT', 'get', 'X']

const PAGES = [
  ...['/', '/overview', '/batches', '/batches/1', '/contractors', '/organisations', '/transfers', '/jobs', '/audit'],
  ...['/audit?to=9999-12-31', '/audit?from=0000-01-01', '/sign-in', '/sign-in/password', '/sign-out', '/docs', '/nope'],
  ...[
    '/invite/x',
    '/invite/late',
    '/invite/email',
    '/invite/sign-in',
    '/payouts.csv',
    '/audit.csv',
    '/transfers.csv',
    '/pulse',
  ],
  ...['/.well-known/stellar.toml', '/icon.svg', '/docs/guides/api', '/_next/static/x.js'],
  ...['/_next/image?url=%2Ficon.svg&w=64&q=75', '/_next/x', '/_next/data/x.json', '/_next/hmr', '/favicon.ico', '*'],
]

const PIECES = [
  ...['%', '%zz', '%00', '%ff', '%2e%2e', '%2F', '..', '.', '//', '\\', ';', '?', '#', '&', '=', '[::', '@', ' ', '\t'],
  ...['\u00e9', 'A'.repeat(3_000), '__proto__', 'constructor', '-1', '0', '1e999', 'null', 'NaN', '$1', "'", '"', '<'],
  ...['00000000-0000-4000-8000-000000000000', '9'.repeat(40), '0000-01-01', '9999-12-31T23:59:59Z', '%F0%9F%92%A9'],
]

const VALUES = [
  ...['null', '0', '-1', '1e400', '""', '[]', '{}', 'true', '"\\u0000"', '"\\ud800"', '[[[[]]]]', '{"__proto__":1}'],
  ...['"a"', `"${'A'.repeat(5_000)}"`, '9007199254740993', '"=1+1"', '{"a":{"a":{}}}', '[1,2,3]', '"AAAA"', '\xff'],
]

const HEADERS: ((pick: Pick) => string)[] = [
  (pick) => `Accept: ${pick(['*/*', 'text/html', 'text/x-component', 'application/json', ','])}`,
  (pick) => `Accept-Encoding: ${pick(['gzip', 'br', 'identity;q=0', 'x'])}`,
  (pick) => `Content-Type: ${pick(['application/json', 'text/plain', 'multipart/form-data; boundary=x', 'x'])}`,
  () => 'Content-Type: application/x-www-form-urlencoded',
  (pick) => `RSC: ${pick(['1', '0', ''])}`,
  (pick) =>
    `Next-Router-State-Tree: ${pick(['[]', '{', '%', '%5B%22%22%2C%7B%7D%5D', '["",{},null]', PIECES[26] ?? ''])}`,
  (pick) => `Next-Router-Prefetch: ${pick(['1', '2', 'x'])}`,
  (pick) => `Next-Router-Segment-Prefetch: ${pick(['/_tree', 'x', '%'])}`,
  (pick) => `Next-Action: ${pick(['x', '0'.repeat(42)])}`,
  (pick) => `Next-Url: ${pick(['/', '%', 'http://x'])}`,
  (pick) => `x-nextjs-data: ${pick(['1', ''])}`,
  (pick) => `x-middleware-${pick(['subrequest', 'rewrite', 'next', 'invoke'])}: ${pick(['1', '/', 'proxy'])}`,
  (pick) => `x-matched-path: ${pick(['/', '/api/me', '%'])}`,
  (pick) => `Expect: ${pick(['100-continue', 'x'])}`,
  (pick) => `Range: ${pick(['bytes=0-1', 'bytes=9-1', 'x'])}`,
  (pick) => `If-None-Match: ${pick(['*', '"x"', 'W/'])}`,
  (pick) => `Origin: ${pick(['null', 'http://localhost', 'https://evil.example', '%'])}`,
  (pick) =>
    `Cookie: ${pick(['=', 'operator=x', `a=${'b'.repeat(4_000)}`, '__prerender_bypass=x; __next_preview_data=x'])}`,
  (pick) => `X-Request-Id: ${pick(['a b', 'ok', 'A'.repeat(2_000)])}`,
  (pick) => `Sec-Fetch-Dest: ${pick(['image', 'document', 'x'])}`,
  (pick) => `Host: ${pick(['', 'a b', '[::', 'evil.example'])}`,
]

const UPGRADES = ['websocket', 'h2c', 'x']

type Pick = <Item>(items: readonly Item[]) => Item

/** A generator of requests that is the same for the same seed. */
export function openGenerator(seed: number, sessions: readonly string[]): () => FuzzedRequest {
  const random = openRandom(seed)
  const pick: Pick = (items) => items[Math.floor(random() * items.length)] as (typeof items)[number]
  const chance = (share: number) => random() < share
  let clients = 0

  const pathOf = (path: string) => `/api${path.replaceAll(/\{\w+\}/g, () => pick(PIECES))}`
  const mutate = (text: string) => {
    const at = Math.floor(random() * (text.length + 1))
    return chance(0.5) ? text.slice(0, at) + pick(PIECES) + text.slice(at) : text.slice(0, at)
  }
  const jsonOf = (example: Record<string, unknown>) => {
    const entries = Object.entries(example).map(([name, value]) => [
      name,
      chance(0.6) ? pick(VALUES) : JSON.stringify(value),
    ])
    return `{${entries.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`
  }

  return () => {
    const operation = pick(OPERATIONS)
    const isApi = chance(0.6)
    let target = isApi ? pathOf(operation.path) : pick(PAGES)
    if (isApi && operation.query && chance(0.5)) {
      target += `?${Object.keys(operation.query.example)
        .map((name) => `${name}=${pick(PIECES)}`)
        .join('&')}`
    }
    if (chance(0.3)) target = mutate(target)
    if (chance(0.03)) target = pick(['http://localhost', 'http://[::', 'https://', '//evil.example', '']) + target
    if (chance(0.02)) target += `?${'A'.repeat(10_000)}`
    const method = isApi && chance(0.7) ? operation.method : pick(METHODS)
    const headers = chance(0.03) ? [] : ['Host: localhost']
    clients += 1
    headers.push(`X-Forwarded-For: 10.${(clients >> 16) & 255}.${(clients >> 8) & 255}.${clients & 255}`)
    if (chance(0.7))
      headers.push(`Authorization: Bearer ${chance(0.9) && sessions.length > 0 ? pick(sessions) : pick(PIECES)}`)
    for (let more = Math.floor(random() * 4); more > 0; more -= 1) headers.push(pick(HEADERS)(pick))
    headers.push(chance(0.05) ? `Connection: Upgrade\r\nUpgrade: ${pick(UPGRADES)}` : 'Connection: close')
    let body = ''
    if (method !== 'GET' && method !== 'HEAD' ? chance(0.7) : chance(0.1)) {
      body = isApi && operation.body ? jsonOf(operation.body.example) : pick(VALUES)
      if (chance(0.3)) body = mutate(body)
      if (chance(0.02)) body = 'x'.repeat(300_000)
      if (chance(0.6)) headers.push('Content-Type: application/json')
    }
    const isPartial = chance(0.03)
    if (chance(0.15)) {
      headers.push('Transfer-Encoding: chunked')
      body = `${body.length.toString(16)}\r\n${body}\r\n${isPartial || body === '' ? '' : '0\r\n\r\n'}`
    } else if (body !== '' || isPartial) headers.push(`Content-Length: ${body.length + (isPartial ? 1_000 : 0)}`)
    const bytes = `${method} ${target} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n${body}`
    return isPartial ? { bytes, hangUpMs: Math.floor(random() * 200) } : { bytes }
  }
}

/** Mulberry32. */
function openRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
