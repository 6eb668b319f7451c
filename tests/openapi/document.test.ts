import { globSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { REFUSAL_CODES, type RefusalCode, statusOf } from '#lib/http/refusal.ts'
import { OPERATIONS, openApiDocument } from '#lib/openapi/document.ts'
import { REFUSAL_REASONS, type RefusalReason, sponsorRefused } from '#lib/sponsor/refusal-reason.ts'
import { loadRoutes, methodsOf } from '../support/api.ts'
import { validatorAt } from '../support/documented.ts'

const document = openApiDocument('http://localhost:3000/api')
const routes = await loadRoutes()

test('every route is in the document, with the methods that it handles, and nothing else is', async () => {
  const handled = await Promise.all(
    routes.map(async (route) => (await methodsOf(route)).map((method) => `${method} ${route.path}`)),
  )
  const documented = Object.entries(document.paths ?? {}).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method} ${path}`),
  )
  expect(documented.sort()).toEqual(handled.flat().sort())
})

test('version, names and references', () => {
  expect([document.openapi, document.info.version]).toEqual(['3.1.0', '1.0.0'])
  expect(new Set(OPERATIONS.map(({ id }) => id)).size).toBe(OPERATIONS.length)
  const text = JSON.stringify(document)
  const references = [...text.matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name)
  expect(references.length).toBeGreaterThan(20)
  const known = Object.keys(document.components?.schemas ?? {})
  expect(references.filter((name) => !known.includes(name ?? ''))).toEqual([])
})

test('what is not in the specification says so', () => {
  const ours = OPERATIONS.filter(({ extension }) => extension).map(({ method, path }) => `${method} ${path}`)
  expect(ours.sort()).toEqual([
    'delete /batches/{id}',
    'delete /payouts/{id}',
    'get /auth/sep10',
    'get /cron/sweep',
    'get /metrics',
    'get /openapi.json',
    'get /ready',
    'patch /me',
    'post /auth/sep10',
    'post /invites/{token}/accept',
    'post /me/identities',
  ])
  for (const { method, path, extension } of OPERATIONS) {
    const operation = document.paths?.[path]?.[method]
    expect((operation as Record<string, unknown> | undefined)?.['x-extension']).toBe(extension)
  }
  const parts = [...JSON.stringify(document).matchAll(/"(?:name":")?(\w+)"[^{}]*\{[^{}]*"x-extension":true/g)]
  expect(new Set(parts.map(([, name]) => name))).toContain('payoutId')
})

describe.each(OPERATIONS.map((operation) => [operation.id, operation] as const))('%s', (_, operation) => {
  const { method, path, query, body, answer, otherAnswers = {} } = operation
  const at = (...rest: string[]) => validatorAt('paths', path, method, ...rest, 'schema')

  test('has examples that are as it says', () => {
    const expected = Object.entries({ ...(answer && { 200: answer }), ...otherAnswers })
    for (const [status, { example, contentType = 'application/json' }] of expected) {
      const validate = at('responses', status, 'content', contentType)
      expect([validate(example), validate.errors]).toEqual([true, null])
    }
    if (body) {
      const validate = at('requestBody', 'content', 'application/json')
      expect([validate(body.example), validate.errors]).toEqual([true, null])
    }
  })

  test('has examples that its route takes, naming every field', () => {
    for (const asked of [query, body]) {
      if (!asked) continue
      expect(asked.schema.safeParse(asked.example).success).toBe(true)
      expect(asked.parsedBy?.safeParse(asked.example).success ?? true).toBe(true)
      expect(Object.keys(asked.example).sort()).toEqual(Object.keys(asked.schema.shape).sort())
    }
  })
})

/** Messages that nobody outside reads: they are turned into another one, go into a log or a row, or stay in a tool. */
const INSIDE = new Set([
  'transaction source is not the channel',
  'the item is no longer paid by this transfer',
  'the call expired',
  'the call failed on the ledger',
  'the network refused the call: {}',
  'the faucet has no account on the ledger',
  'the RPC contradicts itself',
  // Of the dashboard's form.
  'the body must be application/x-www-form-urlencoded',
])

/** What a file says into the interface: of the relay only its jobs, and on /transfer every failure is one message. */
const isHeard = (file: string, status: number) =>
  !(/^lib\/relay\/(?!jobs)|^lib\/auth\/operator/.test(file) || (file.startsWith('lib/sponsor/') && status === 503))

/** Every message of a Refusal in the sources of the interface, by status, `{}` for what varies. */
function messagesInSources(): { status: number; message: string; file: string }[] {
  const files = globSync(['app/api/**/*.ts', 'lib/{auth,directory,funding,metrics,relay,sponsor}/**/*.ts', 'lib/*.ts'])
  const code = REFUSAL_CODES.join('|')
  const pattern = new RegExp(`new Refusal\\(\\s*'(${code})',\\s*(?:'([^']*)'|"([^"]*)"|\`([^\`]*)\`)`, 'g')
  const written = files.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(pattern)].map(([, found, plain, quoted, template]) => ({
      status: statusOf(found as RefusalCode),
      message: (plain ?? quoted ?? template ?? '').replaceAll(/\$\{[^}]*\}/g, '{}'),
      file,
    })),
  )
  return written.filter(({ file, status }) => isHeard(file, status))
}

/** Every message in the document, by status, `{}` for what varies. */
function messagesInDocument(): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>()
  for (const item of Object.values(document.paths ?? {})) {
    for (const operation of Object.values(item as Record<string, { responses: Record<string, unknown> }>)) {
      for (const [status, response] of Object.entries(operation.responses)) {
        const errors = [...JSON.stringify(response).matchAll(/"value":\{"error":("(?:[^"\\]|\\.)*")\}/g)]
        const messages = errors.map(([, text = '""']) => String(JSON.parse(text)).replaceAll(/\{[\w ]+\}/g, '{}'))
        found.set(status, new Set([...(found.get(status) ?? []), ...messages]))
      }
    }
  }
  return found
}

describe('messages', () => {
  const documented = messagesInDocument()
  const written = messagesInSources()

  test('every one that the sources have is in the document, under its status', () => {
    expect(written.length).toBeGreaterThan(40)
    const missing = written.filter(
      ({ status, message }) => !INSIDE.has(message) && !documented.get(String(status))?.has(message),
    )
    expect(missing).toEqual([])
  })

  test('the 422s are the reasons of the sponsor, each word for word', () => {
    const refused = Object.keys(REFUSAL_REASONS).map((reason) => {
      const detail = reason === 'would-fail' ? { detail: '{}' } : {}
      return sponsorRefused(reason as RefusalReason, detail).message
    })
    expect([...(documented.get('422') ?? [])].sort()).toEqual(refused.sort())
  })

  test('every reason of the sponsor is given somewhere, and with a detail only where the document has one', () => {
    const files = globSync('lib/sponsor/*.ts').filter((file) => !file.endsWith('refusal-reason.ts'))
    const text = files.map((file) => readFileSync(file, 'utf8')).join('\n')
    expect(Object.keys(REFUSAL_REASONS).filter((reason) => !text.includes(`'${reason}'`))).toEqual([])
    const detailed = [...text.matchAll(/sponsorRefused\('([\w-]+)', \{[^}]*detail/g)].map(([, reason]) => reason)
    expect(detailed).toEqual(['would-fail'])
  })

  // Those of fields are answered, every one, in malformed.test.ts; those of the sponsor are above.
  test('no other in the document is one that the sources have not', () => {
    const sources = globSync(['{app/api,lib}/**/*.ts', '!lib/openapi/**']).map((file) => readFileSync(file, 'utf8'))
    const text = sources.join('\n').replaceAll(/\$\{[^}]*\}/g, '{}')
    for (const [status, messages] of documented) {
      if (status === '400' || status === '422') continue
      expect([...messages].filter((message) => !text.includes(message))).toEqual([])
    }
  })
})
