import { execFile } from 'node:child_process'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createPayrollClient, pages, take } from '#lib/sdk/payroll-client.ts'
import { openApi } from '../support/api.ts'
import { employerNamed } from '../support/fixtures.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

const run = promisify(execFile)
const tool = (name: string) => join('node_modules', '.bin', name)

let directory: string
let service: TestService
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'payroll-client-'))
  await writeFile(join(directory, 'package.json'), '{ "type": "module" }')
  await symlink(resolve('node_modules'), join(directory, 'node_modules'))
  service = await openTestService()
})
afterAll(async () => {
  await service?.close()
  await rm(directory, { recursive: true, force: true })
})

/** The compiler's errors for a program that uses the client; empty if there are none. */
async function compile(program: string): Promise<string> {
  const file = join(directory, 'program.ts')
  const imports = `import { createPayrollClient, pages, PayrollError, take } from '${resolve('lib/sdk/payroll-client.ts')}'`
  const client =
    "const client = createPayrollClient({ baseUrl: 'https://payroll.example/api', session: () => undefined })"
  const exports = 'export const names = [pages, PayrollError, take]'
  await writeFile(file, [imports, client, exports, program].join('\n'))
  const options = [
    '--ignoreConfig',
    '--noEmit',
    '--strict',
    '--noUncheckedIndexedAccess',
    '--exactOptionalPropertyTypes',
  ]
  const target = ['--target', 'ES2024', '--module', 'nodenext', '--lib', 'ES2024,DOM', '--types', '']
  const flags = [...options, '--erasableSyntaxOnly', '--allowImportingTsExtensions', ...target]
  return await run(tool('tsc'), [...flags, file]).then(
    () => '',
    (failure: { stdout: string }) => failure.stdout,
  )
}

const PROGRAM = `
export async function pay(signedXDR: string): Promise<string> {
  const { hash, status } = await take(client.POST('/transfer', { body: { signedXDR } }))
  const settled: 'SUCCESS' = status
  return hash + settled
}
export async function ready(): Promise<string[]> {
  const all: string[] = []
  for await (const { contractors } of pages((query) => client.GET('/contractors', { params: { query } }))) {
    all.push(...contractors.map(({ name, status }) => (status === 'ready' ? name : '')))
  }
  return all
}
export async function refusal(id: string): Promise<string> {
  try {
    await client.GET('/batches/{id}', { params: { path: { id } } })
    return 'none'
  } catch (error) {
    if (error instanceof PayrollError) return error.code
    throw error
  }
}
`

test('compiles in strict mode, as does a program that uses it', async () => {
  expect(await compile(PROGRAM)).toBe('')
})

test.each([
  ["client.POST('/contractors', { body: { email: 'ada@example.com' } })", "Property 'name' is missing"],
  [
    "client.POST('/contractors', { body: { name: 'Ada', rate: { amount: '1', currency: 'EUR' } } })",
    'not assignable to type \'"USDC"\'',
  ],
  ["client.GET('/payouts', { params: { query: { status: 'settled' } } })", '\'"settled"\' is not assignable'],
  ["client.GET('/batches/{id}')", 'Expected 2 arguments'],
  ["client.POST('/everybody/pay')", 'error TS'],
  ["take(client.GET('/me')).then((me) => me.salary)", "Property 'salary' does not exist"],
])('rejects at compile time %s', async (call, complaint) => {
  expect(await compile(`${call}\n`)).toContain(complaint)
})

async function clientOf(session?: string) {
  const baseUrl = 'http://localhost:3000/api/'
  return createPayrollClient({ baseUrl, fetch: await openApi(), ...(session !== undefined && { session }) })
}
const sessionOf = async (name: string) => (await employerNamed(service, name)).session

test('calls the service, and follows the pages of a list', async () => {
  const client = await clientOf(await sessionOf('ada'))
  expect((await take(client.GET('/me'))).roles).toEqual(['employer'])
  const create = (name: string) => take(client.POST('/contractors', { body: { name } }))
  for (const name of ['Grace', 'Joan', 'Mary / 100% #1']) await create(name)
  const { id, status } = await create('Barbara')
  const contractor = await take(client.GET('/contractors/{id}', { params: { path: { id } } }))
  expect([status, contractor.name]).toEqual(['invited', 'Barbara'])
  const seen: string[][] = []
  for await (const page of pages((query) => client.GET('/contractors', { params: { query } }), 3)) {
    seen.push(page.contractors.map(({ name }) => name))
  }
  expect(seen).toEqual([['Barbara', 'Mary / 100% #1', 'Joan'], ['Grace']])
})

test('throws a refusal with its status, code and message', async () => {
  const client = await clientOf(await sessionOf('ada'))
  const [nobody, stranger] = [await clientOf(), await clientOf('nonsense')]
  const refused = (status: number, code: string, message: string) => ({ name: 'PayrollError', status, code, message })
  const body = { name: '', email: 'x' }
  await expect(client.POST('/contractors', { body })).rejects.toMatchObject({
    ...refused(400, 'name-required', 'name required'),
    fields: [{ path: 'name' }, { path: 'email' }],
    requestId: expect.any(String),
  })
  const path = { id: 'a/../b' }
  await expect(client.GET('/contractors/{id}', { params: { path } })).rejects.toMatchObject(
    refused(404, 'contractor-not-found', 'contractor not found'),
  )
  await expect(nobody.GET('/me')).rejects.toMatchObject(refused(401, 'bearer-missing', 'missing bearer token'))
  await expect(stranger.GET('/me')).rejects.toMatchObject(refused(401, 'bearer-invalid', 'invalid session token'))
  await expect(client.POST('/withdraw')).rejects.toMatchObject({ status: 501, code: 'not-wired' })
})

test('prints the usage of the command', async () => {
  const { stdout } = await run(tool('node'), ['tests/api/generator/client.ts', '--help'])
  expect(stdout).toContain('npm run client')
})
