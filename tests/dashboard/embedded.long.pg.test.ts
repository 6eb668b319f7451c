import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../support/port.ts'
import { type Program, startProgram } from '../support/program.ts'
import { rawRequest } from '../support/raw-request.ts'

const PUBLIC = 'https://payroll.example'
const PASSWORD = 'a password for the tests'

let directory: string
let program: Program
let base: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'payroll-forms-'))
  const port = await freePort()
  base = `http://localhost:${port}`
  program = await startProgram(base, {
    PORT: String(port),
    DEVNET_PORT: String(await freePort()),
    RELAY_PORT: '0',
    DATA_DIR: directory,
    PUBLIC_URL: PUBLIC,
    OPERATOR_PASSWORD: PASSWORD,
  })
})
afterAll(async () => {
  await program?.kill()
  await rm(directory, { recursive: true, force: true })
})

/** The headers of a proxy that sends its own name as the Host, as nginx does by default. */
const BEHIND_A_PROXY = { Host: 'upstream', 'X-Forwarded-Host': 'another', 'X-Forwarded-Proto': 'http' }

const send = (path: string, fields: Record<string, string>, headers: Record<string, string>) =>
  rawRequest(base, path, {
    method: 'POST',
    headers: { ...BEHIND_A_PROXY, 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
    body: new URLSearchParams(fields).toString(),
  })

/** The cookies that a response sets, each with its name, value and attributes. */
const cookiesOf = ({ headers }: Awaited<ReturnType<typeof send>>) =>
  (headers['set-cookie'] ?? []).map((cookie) => {
    const [pair = '', ...terms] = cookie.split(/; */)
    const [name, value] = pair.split('=')
    return { name, value, named: pair, terms: terms.map((term) => term.toLowerCase()) }
  })

const enter = (fields: Record<string, string> = {}, headers: Record<string, string> = { Origin: PUBLIC }) =>
  send('/sign-in/password', { name: 'Ada', password: PASSWORD, ...fields }, headers)

describe('behind a proxy that does not pass the Host, so that only PUBLIC_URL names the service', () => {
  test('redirects to the requested page after sign-in', async () => {
    const answer = await enter({ to: '/transfers?view=failed' })
    expect([answer.status, answer.headers.location]).toEqual([303, '/transfers?view=failed'])
    const cookies = cookiesOf(answer)
    expect(cookies.map(({ name }) => name)).toEqual(['__Host-operator', '__Host-operator-browser'])
    for (const { terms } of cookies) {
      expect(terms).toEqual(expect.arrayContaining(['httponly', 'samesite=lax', 'secure', 'path=/']))
    }
    const page = await rawRequest(base, '/transfers', {
      headers: { ...BEHIND_A_PROXY, Cookie: cookies.map(({ named }) => named).join('; ') },
    })
    expect(page.status).toBe(200)
    expect(JSON.stringify(answer.headers) + page.text).not.toMatch(/upstream|another/)
  })

  test.each(['/organisations?q=north', `/ledger/${'0'.repeat(64)}`, '/batches/b?page=2'])(
    'redirects to %s and to any other page of the dashboard after sign-in',
    async (to) => {
      const answer = await enter({ to })
      expect([answer.status, answer.headers.location]).toEqual([303, to])
    },
  )

  test('removes the cookie of a signed-in user on sign-out', async () => {
    const Cookie = cookiesOf(await enter())
      .map(({ named }) => named)
      .join('; ')
    const out = await send('/sign-out', {}, { Origin: PUBLIC, Cookie })
    expect([out.status, out.headers.location]).toEqual([303, '/sign-in?problem=out'])
    expect(cookiesOf(out)).toMatchObject([{ name: '__Host-operator', value: '' }])
    const stranger = await send('/sign-out', {}, { Origin: PUBLIC })
    expect([stranger.status, stranger.headers.location]).toEqual([303, '/sign-in?to=%2Foverview'])
    expect(cookiesOf(stranger)).toEqual([])
  })

  test('rejects a wrong password, an empty one, and one in the wrong field', async () => {
    for (const fields of [{ password: 'wrong' }, { password: '' }]) {
      const answer = await enter({ ...fields, to: '/jobs' })
      expect([answer.status, answer.headers.location]).toEqual([
        303,
        '/sign-in?problem=wrong&name=Ada&to=%2Fjobs#password',
      ])
      expect(cookiesOf(answer)).toEqual([])
    }
    const misnamed = await send('/sign-in/password', { name: 'Ada', word: PASSWORD }, { Origin: PUBLIC })
    expect(misnamed.headers.location).toBe('/sign-in?problem=wrong&name=Ada&to=%2Foverview#password')
    await enter()
  })

  test.each([
    'https://elsewhere.example/',
    '//elsewhere.example',
    '/\\elsewhere.example',
    '/overview/../../x',
    '/api/me',
  ])('does not redirect to %s after sign-in', async (to) => {
    expect((await enter({ to })).headers.location).toBe('/overview')
  })
})

describe('a form from elsewhere', () => {
  const FOREIGN: Record<string, string>[] = [
    { Origin: 'https://elsewhere.example' },
    { Origin: 'https://elsewhere.example', Host: 'elsewhere.example', 'X-Forwarded-Host': 'elsewhere.example' },
    { Origin: 'null' },
    { 'Sec-Fetch-Site': 'cross-site' },
    { Referer: 'https://elsewhere.example/' },
    {},
  ]

  test.each(FOREIGN)('is refused with the right and a wrong password: %j', async (headers) => {
    for (const password of [PASSWORD, 'wrong']) {
      const answer = await enter({ password }, headers)
      expect([answer.status, cookiesOf(answer)]).toEqual([403, []])
    }
  })

  test.each(FOREIGN)('does not sign the operator out: %j', async (headers) => {
    const Cookie = cookiesOf(await enter())
      .map(({ named }) => named)
      .join('; ')
    const answer = await send('/sign-out', {}, { ...headers, Cookie })
    expect([answer.status, cookiesOf(answer)]).toEqual([403, []])
  })

  test('gets a link to the dashboard, and no CORS header, at another address of the service', async () => {
    const { headers, text } = await enter({}, { Origin: base })
    expect(headers['content-type']).toBe('text/html; charset=utf-8')
    expect(text).toContain(`<a href="${PUBLIC}/sign-in">`)
    expect(text).toContain('PUBLIC_URL')
    expect(headers).not.toHaveProperty('access-control-allow-origin')
  })
})

test('redirects a GET of a form’s address to its page, and refuses other methods and bodies', async () => {
  for (const [path, page] of [
    ['/sign-in/password', '/sign-in'],
    ['/sign-out', '/overview'],
  ] as const) {
    const visit = await rawRequest(base, path)
    expect([visit.status, visit.headers.location]).toEqual([303, page])
    expect((await rawRequest(base, path, { method: 'PUT' })).status).toBe(404)
  }
  const json = { Origin: PUBLIC, 'Content-Type': 'application/json' }
  expect((await rawRequest(base, '/sign-in/password', { method: 'POST', headers: json, body: '{}' })).status).toBe(415)
  const large = await enter({ password: 'x'.repeat(300_000) })
  expect(large.status).toBe(413)
})

test.each(['/', '/sign-in', '/overview', '/nowhere', '/sign-out/x', '/API/me'])(
  'rejects a POST to the page %s',
  async (path) => {
    const chunked = { 'Transfer-Encoding': 'chunked' }
    for (const headers of [{}, chunked]) {
      const answer = await rawRequest(base, path, { method: 'POST', headers, body: 'x'.repeat(100_000) })
      expect([answer.status, answer.headers.allow]).toEqual([405, 'GET, HEAD'])
    }
  },
)

test('accepts the right password from a new browser while others guess at the operator’s address', async () => {
  const enterWith = async (password: string) => (await enter({ password })).headers.location
  const flood = await Promise.all(Array.from({ length: 400 }, () => enterWith('wrong')))
  expect(flood).toContain('/sign-in?problem=wait&seconds=1&name=Ada&to=%2Foverview#password')
  // The browser still shows the sign-in page.
  expect((await rawRequest(base, '/sign-in')).status).toBe(200)
  // One attempt in ten is chosen at random, and at most three of those a second are checked at once.
  await expect.poll(() => enterWith(PASSWORD), { interval: 10 }).toBe('/overview')
})
