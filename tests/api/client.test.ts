import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { OPERATIONS } from '#lib/api/operations.ts'
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
  await run(tool('node'), ['lib/cli/client.ts', join(directory, 'payroll-client.ts')])
  service = await openTestService()
})
afterAll(async () => {
  await service?.close()
  await rm(directory, { recursive: true, force: true })
})

async function sessionOf(name: string): Promise<string> {
  return (await employerNamed(service, name)).session
}

/** What the compiler says of a program that uses the client: nothing, or its complaints. */
async function compile(program: string): Promise<string> {
  const file = join(directory, 'program.ts')
  await writeFile(file, `import { createPayrollClient, PayrollError } from './payroll-client.ts'\n${program}`)
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
const client = createPayrollClient({ baseUrl: 'https://payroll.example/api', session: () => undefined })
export async function pay(signedXDR: string): Promise<string> {
  const { hash, status } = await client.sponsorTransfer({ signedXDR })
  const settled: 'SUCCESS' = status
  return hash + settled
}
export async function names(): Promise<string[]> {
  const all: string[] = []
  for await (const { contractors } of client.listContractorsPages({ limit: 100 })) {
    all.push(...contractors.map(({ name, status }) => (status === 'ready' ? name : '')))
  }
  return all
}
export async function refusal(): Promise<number> {
  try {
    await client.getBatch('nothing')
    return 200
  } catch (error) {
    if (error instanceof PayrollError) return error.status
    throw error
  }
}
`

test('it compiles, strictly, and so does a program that uses it', async () => {
  expect(await compile(PROGRAM)).toBe('')
})

test.each([
  ["client.createContractor({ email: 'ada@example.com' })", "Property 'name' is missing"],
  [
    "client.createContractor({ name: 'Ada', rate: { amount: '1', currency: 'EUR' } })",
    'not assignable to type \'"USDC"\'',
  ],
  ["client.listPayouts({ status: 'settled' })", '\'"settled"\' is not assignable'],
  ['client.getBatch()', 'Expected 1 arguments'],
  ['client.payEverybody()', "Property 'payEverybody' does not exist"],
  ['client.getMe().then((me) => me.salary)', "Property 'salary' does not exist"],
])('%s does not compile', async (call, complaint) => {
  const said = await compile(
    `const client = createPayrollClient({ baseUrl: 'https://payroll.example/api' })\n${call}\n`,
  )
  expect(said).toContain(complaint)
})

test('folders on the way are made', async () => {
  const path = join(directory, 'frontend', 'src', 'payroll-client.ts')
  await run(tool('node'), ['lib/cli/client.ts', path])
  expect(await readFile(path, 'utf8')).toContain('createPayrollClient')
})

test('it says what it needs when it is not told where to', async () => {
  await expect(run(tool('node'), ['lib/cli/client.ts'])).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('npm run client -- '),
  })
})

/** What the test uses of the client that was written. */
interface Client {
  createContractor(body: object): Promise<{ id: string; status: string }>
  getContractor(id: string): Promise<{ name: string }>
  listContractors(query?: object): Promise<{ contractors: { name: string }[] }>
  listContractorsPages(query?: object): AsyncGenerator<{ contractors: { name: string }[] }>
  getMe(): Promise<{ roles: string[] }>
  getHealth(): Promise<object>
  withdraw(): Promise<never>
}

async function openClient(options: { session?: string }): Promise<Client> {
  const { href } = pathToFileURL(join(directory, 'payroll-client.ts'))
  const { createPayrollClient } = await import(href)
  return createPayrollClient({ baseUrl: 'http://localhost:3000/api/', fetch: await openApi(), ...options })
}

test('it has a method for every operation', async () => {
  expect(Object.keys(await openClient({}))).toEqual(expect.arrayContaining(OPERATIONS.map(({ id }) => id)))
})

test('it speaks with the service', async () => {
  const session = await sessionOf('ada')
  const client = await openClient({ session })
  expect((await client.getMe()).roles).toEqual(['employer'])
  for (const name of ['Grace', 'Joan', 'Mary / 100% #1']) await client.createContractor({ name })
  const { id, status } = await client.createContractor({ name: 'Barbara', rate: { amount: '7', currency: 'USDC' } })
  expect([status, (await client.getContractor(id)).name]).toEqual(['invited', 'Barbara'])
  const pages: string[][] = []
  for await (const { contractors } of client.listContractorsPages({ limit: 3 })) {
    pages.push(contractors.map(({ name }) => name))
  }
  expect(pages).toEqual([['Barbara', 'Mary / 100% #1', 'Joan'], ['Grace']])
  expect((await client.listContractors({ limit: 1 })).contractors).toHaveLength(1)
})

test('what the service refuses is thrown, with status and words', async () => {
  const session = await sessionOf('ada')
  const client = await openClient({ session })
  const [nobody, stranger] = [await openClient({}), await openClient({ session: 'nonsense' })]
  const refused = (status: number, message: string) => ({ name: 'PayrollError', status, message })
  await expect(client.createContractor({ name: '' })).rejects.toMatchObject(refused(400, 'name required'))
  await expect(client.getContractor('a/../b')).rejects.toMatchObject(refused(404, 'contractor not found'))
  await expect(nobody.getMe()).rejects.toMatchObject(refused(401, 'missing bearer token'))
  await expect(stranger.getMe()).rejects.toMatchObject(refused(401, 'invalid session token'))
  await expect(client.withdraw()).rejects.toMatchObject({ status: 501 })
})
