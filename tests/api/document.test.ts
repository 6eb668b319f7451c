import { globSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { interfaceDocument, OPERATIONS } from '#lib/api/interface.ts'
import { refusalsOf } from '#lib/api/operation-refusals.ts'
import { messageOf, REFUSAL_CODES, REFUSALS } from '#lib/refusal/refusal.ts'
import { loadRoutes, methodsOf } from '../support/api.ts'
import { validatorAt } from '../support/documented.ts'

const document = interfaceDocument('http://localhost:3000/api')
const routes = await loadRoutes()

test('declares exactly the handled routes and methods', async () => {
  const handled = await Promise.all(
    routes.map(async (route) => (await methodsOf(route)).map((method) => `${method} ${route.path}`)),
  )
  const documented = Object.entries(document.paths ?? {}).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method} ${path}`),
  )
  expect(documented.sort()).toEqual(handled.flat().sort())
})

test('has version 3.1.0, unique operation ids, and references that resolve', () => {
  expect([document.openapi, document.info.version]).toEqual(['3.1.0', '1.0.0'])
  expect(new Set(OPERATIONS.map(({ id }) => id)).size).toBe(OPERATIONS.length)
  const text = JSON.stringify(document)
  const references = [...text.matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name)
  expect(references.length).toBeGreaterThan(20)
  const names = Object.keys(document.components?.schemas ?? {})
  expect(references.filter((name) => !names.includes(name ?? ''))).toEqual([])
})

test('has the header of operations that take an Idempotency-Key, and of no other', () => {
  for (const { method, path, idempotent } of OPERATIONS) {
    const item = document.paths?.[path] as Record<string, { parameters?: object[]; responses: object }> | undefined
    const { parameters = [], responses } = item?.[method.toLowerCase()] ?? {}
    const header = { in: 'header', name: 'Idempotency-Key', schema: { minLength: 1, maxLength: 255 } }
    const [own] = parameters.filter((parameter) => 'in' in parameter && parameter.in === 'header')
    if (idempotent) expect(own).toMatchObject(header)
    else expect(own).toBeUndefined()
    if (idempotent) expect(responses).toMatchObject({ 200: { headers: { 'Idempotency-Replayed': {} } } })
  }
})

test('marks operations and fields beyond the specification', () => {
  const ours = OPERATIONS.filter(({ extension }) => extension).map(
    ({ method, path }) => `${method.toLowerCase()} ${path}`,
  )
  expect(ours.sort()).toEqual([
    'delete /batches/{id}',
    'delete /me/identities/{kind}',
    'delete /payouts/{id}',
    'delete /webhooks/{id}',
    'get /archive/v1/health',
    'get /archive/v1/tokens/{contract}/accounts/{account}/checkpoint',
    'get /archive/v1/tokens/{contract}/accounts/{account}/events',
    'get /archive/v1/tokens/{contract}/events',
    'get /archive/v1/tokens/{contract}/registry',
    'get /auth/sep10',
    'get /batches/{id}/approval',
    'get /cron/sweep',
    'get /events',
    'get /metrics',
    'get /openapi.json',
    'get /ready',
    'get /relay',
    'get /webhooks',
    'get /webhooks/{id}/deliveries',
    'patch /me',
    'post /auth/sep10',
    'post /batches/{id}/run',
    'post /batches/{id}/seals',
    'post /calls',
    'post /invites/{token}/accept',
    'post /me/identities',
    'post /webhooks',
    'post /webhooks/{id}/deliveries/{delivery}/redeliver',
    'post /webhooks/{id}/secret',
    'post /webhooks/{id}/test',
  ])
  for (const { method, path, extension } of OPERATIONS) {
    const operation = (document.paths?.[path] as Record<string, unknown> | undefined)?.[method.toLowerCase()]
    expect((operation as Record<string, unknown> | undefined)?.['x-extension']).toBe(extension)
  }
  const parts = [...JSON.stringify(document).matchAll(/"(?:name":")?(\w+)"[^{}]*\{[^{}]*"x-extension":true/g)]
  expect(new Set(parts.map(([, name]) => name))).toContain('payoutId')
})

describe.each(OPERATIONS.map((operation) => [operation.id, operation] as const))('%s', (_, operation) => {
  const { method, path, query, body, response, otherResponses = {} } = operation
  const at = (...rest: string[]) => validatorAt('paths', path, method.toLowerCase(), ...rest, 'schema')

  test('has examples that match its schemas', () => {
    const expected = Object.entries({ ...(response && { 200: response }), ...otherResponses })
    for (const [status, { example, contentType = 'application/json' }] of expected) {
      const validate = at('responses', status, 'content', contentType)
      expect([validate(example), validate.errors]).toEqual([true, null])
    }
    if (body) {
      const validate = at('requestBody', 'content', 'application/json')
      expect([validate(body.example), validate.errors]).toEqual([true, null])
    }
  })

  test('has examples that its route accepts, with every field but pay in clear text', () => {
    for (const request of [query, body]) {
      if (!request) continue
      expect(request.schema.safeParse(request.example).success).toBe(true)
      const { schema, docsSchema = schema } = request
      expect(docsSchema.safeParse(request.example).success).toBe(true)
      const { properties = {} } = z.toJSONSchema(docsSchema, { io: 'input', unrepresentable: 'any' })
      const fields = Object.keys(properties).filter((name) => name !== 'rate')
      expect(Object.keys(request.example).sort()).toEqual(fields.sort())
      expect(JSON.stringify(request.example)).not.toMatch(/"(rate|amount)"/)
    }
  })
})

/** The codes that these sources throw, each with its file. */
function codesIn(...patterns: string[]): { code: string; file: string }[] {
  return globSync(patterns).flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/new Refusal\(\s*'([\w-]+)'/g)].map(([, code = '']) => ({ code, file })),
  )
}

/** The routes of the dashboard and of invites, which are not operations. */
const isPage = (file: string) => /^(app\/|lib\/api\/sdk-package)/.test(file) || file.startsWith('lib/auth/operator')

describe('codes', () => {
  const documented = new Set<string>(OPERATIONS.flatMap((operation) => [...refusalsOf(operation).values()].flat()))
  const thrown = codesIn('app/**/*.ts', 'lib/{api,archive,auth,directory,faucet,http,relay,server,transfers}/**/*.ts')
  const onPages = new Set(thrown.filter(({ file }) => isPage(file)).map(({ code }) => code))

  test('documents every code that an operation throws', () => {
    const undocumented = thrown.filter(({ code, file }) => !isPage(file) && !documented.has(code))
    expect(thrown.length).toBeGreaterThan(40)
    expect(undocumented).toEqual([])
  })

  test('has no code in the table that is neither documented nor thrown by a page', () => {
    const allCodes = Object.values(REFUSALS).flatMap((codes) => Object.keys(codes))
    expect(allCodes.filter((code) => !documented.has(code) && !onPages.has(code))).toEqual([])
  })

  test('documents every field code except email-required, which only the email sign-in returns', () => {
    const ofTable = new Set(Object.values(REFUSALS).flatMap((codes) => Object.keys(codes)))
    const ofFields = REFUSAL_CODES.filter((code) => !ofTable.has(code))
    expect(ofFields.filter((code) => !documented.has(code))).toEqual(['email-required'])
  })

  test('lists every code of an operation under its status, with its message', () => {
    for (const operation of OPERATIONS) {
      const item = document.paths?.[operation.path] as Record<string, { responses: Record<string, unknown> }>
      for (const [status, codes] of refusalsOf(operation)) {
        const response = JSON.stringify(item[operation.method.toLowerCase()]?.responses[String(status)])
        for (const code of codes) {
          expect(response).toContain(`"${code}"`)
          expect(response).toContain(JSON.stringify(messageOf(code)).slice(1, -1))
        }
      }
    }
  })
})
