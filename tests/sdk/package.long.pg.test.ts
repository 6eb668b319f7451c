import { execFile } from 'node:child_process'
import { existsSync, globSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { build, type Rolldown } from 'vite'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { installSdk } from '../support/install-sdk.ts'
import { freePort } from '../support/port.ts'
import { type Program, startProgram } from '../support/program.ts'

const run = promisify(execFile)
/** The tarball of this build, which the service serves. */
const packedFile = () => globSync('lib/sdk/dist/*.tgz')[0] ?? ''
const tool = (name: string) => resolve('node_modules/.bin', name)

let directory: string
let program: Program
let base: string
let deployment: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'payroll-sdk-'))
  const [port, devnet] = [await freePort(), await freePort()]
  base = `http://localhost:${port}`
  deployment = `http://localhost:${devnet}/deployment.json`
  program = await startProgram(base, {
    PORT: String(port),
    DEVNET_PORT: String(devnet),
    DEVNET_PROOFS: 'real',
    DATA_DIR: join(directory, 'data'),
  })
})
afterAll(async () => {
  await program?.kill()
  await rm(directory, { recursive: true, force: true })
})

/** A project that checks the package's own types, and those that they name, without types of Node. */
async function checkTypesIn(project: string): Promise<string> {
  const imports = ['', '/wallet', '/prover', '/disclosure', '/webhooks'].map(
    (part, index) => `export * as part${index} from 'confidential-payroll-sdk${part}'`,
  )
  await writeFile(join(project, 'all.ts'), imports.join('\n'))
  const compilerOptions = {
    ...{ noEmit: true, strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
    ...{ module: 'nodenext', target: 'es2022', lib: ['es2024', 'dom', 'dom.iterable'], types: [], skipLibCheck: false },
  }
  const file = join(project, 'tsconfig.types.json')
  await writeFile(file, JSON.stringify({ compilerOptions, files: ['all.ts'] }))
  return file
}

test('a project that installs nothing but the package of /sdk compiles strictly and pays', async () => {
  const project = join(directory, 'node')
  await cp('docs/examples/node', project, { recursive: true })
  const options = { cwd: project }
  await installSdk(base, project)
  await run(tool('tsc'), ['--project', project], options)
  await run(tool('tsc'), ['--project', await checkTypesIn(project)], options)
  const { stdout } = await run(process.execPath, ['pay.ts', base, deployment], options)
  expect(stdout).toContain("status: 'SUCCESS'")
  expect(stdout).toContain('received, in base units: 125000000n')
})

test('a client with nothing but the package resists a service and an RPC that lie', async () => {
  const project = join(directory, 'node')
  await cp('tests/sdk/outside', join(project, 'outside'), { recursive: true })
  await run(tool('tsc'), ['--project', project], { cwd: project })
  const { stdout } = await run(process.execPath, ['outside/attacks.ts', base, deployment], { cwd: project })
  expect(JSON.parse(stdout)).toEqual({
    'a challenge of another host': 'challenge-invalid',
    'another address for a payee': 'list-differs',
    'an address that only the service has': 'payee-unverified',
    'another key of the relay': 'relay-unknown',
    'another channel of the relay': 'relay-unknown',
    'a delegation for ever': 'terms-absurd',
    'a payment that was never made': 'not-on-ledger',
    'a fee that nobody would pay': 'fee-too-high',
    'spent by all of these': '0',
    'paid by all of these': 0,
    'no attack': '1 of 1',
    'a payment that the service has forgotten': '1 of 1',
    'the same, without notes': '1 of 1',
    'payouts in place of those that were paid': 'list-differs',
    'the same without notes': 'payment-unknown',
    'payments in the end': 1,
    'received in the end': '30000000',
  })
})

test('the snippets of the documentation compile in a project that tsc --init creates', async () => {
  const project = join(directory, 'node')
  const folder = join(project, 'snippets')
  await mkdir(folder)
  const { dependencies } = JSON.parse(await readFile('package.json', 'utf8'))
  const freighter = `@stellar/freighter-api@${dependencies['@stellar/freighter-api']}`
  await run('npm', ['install', '--no-audit', '--no-fund', freighter], { cwd: project })
  await run(tool('tsc'), ['--init'], { cwd: folder })
  for (const [page, place] of [
    ['docs/api.md', folder],
    ['lib/sdk/README.md', folder],
    // Programs for Node, with its types.
    ['docs/events.md', project],
  ] as const) {
    const snippets = [...(await readFile(page, 'utf8')).matchAll(/```ts\n([\s\S]*?)```/g)]
    expect(snippets).not.toEqual([])
    for (const [index, [, code = '']] of snippets.entries()) {
      await writeFile(join(place, `${page.replaceAll('/', '-')}-${index}.ts`), code)
    }
  }
  await run(tool('tsc'), ['--project', project], { cwd: project })
  await run(tool('tsc'), ['--project', folder, '--noEmit'])
})

/** Bytes, gzipped, that a bundle of a whole entry loads before any of its functions is called. */
async function bundledSize(entry: string): Promise<number> {
  const { output } = (await build({
    configFile: false,
    root: join(directory, 'node'),
    logLevel: 'error',
    plugins: [
      {
        name: 'entry',
        resolveId: (id) => (id === 'virtual:entry' ? '\0entry' : undefined),
        load: (id) => (id === '\0entry' ? `export * from '${entry}'` : undefined),
      },
    ],
    build: { write: false, rolldownOptions: { input: 'virtual:entry', preserveEntrySignatures: 'strict' } },
  })) as Rolldown.RolldownOutput
  const chunks = output.filter((part) => part.type === 'chunk')
  const loaded = new Set(chunks.filter(({ isEntry }) => isEntry))
  for (const { imports } of loaded) {
    for (const chunk of chunks) if (imports.includes(chunk.fileName)) loaded.add(chunk)
  }
  return [...loaded].reduce((sum, { code }) => sum + gzipSync(code).length, 0)
}

/** The most kilobytes that an entry may have; the prover and disclosures load circuits and bb.js on demand. */
const LIMITS = { '': 15, '/wallet': 250, '/prover': 50, '/disclosure': 250, '/webhooks': 15 }

test.each(Object.entries(LIMITS))(
  'the size of confidential-payroll-sdk%s matches the documentation',
  async (path, most) => {
    const name = `confidential-payroll-sdk${path}`
    const [, documented] =
      new RegExp(`^\\| \`${name}\` \\|.*\\| (\\d+) kB`, 'm').exec(await readFile('docs/api.md', 'utf8')) ?? []
    const size = (await bundledSize(name)) / 1000
    expect(size).toBeLessThan(most)
    expect(Math.abs(size - Number(documented))).toBeLessThan(Math.max(1, size / 20))
  },
)

test('a frontend’s npm ci succeeds after the service has changed its version', async () => {
  const project = join(directory, 'frontend')
  await mkdir(project)
  await writeFile(join(project, 'package.json'), JSON.stringify({ name: 'frontend' }))
  await installSdk(base, project)
  await rm(join(project, 'node_modules'), { recursive: true })
  // The lock file names a file of the project, so that no service has to be running.
  expect(await readFile(join(project, 'package-lock.json'), 'utf8')).not.toContain('localhost')
  await run('npm', ['ci', '--no-audit', '--no-fund'], { cwd: project })
  expect(existsSync(join(project, 'node_modules/confidential-payroll-sdk/package.json'))).toBe(true)
})

test('npm ci names what is gone if its lock file has the address of another version', async () => {
  const project = join(directory, 'by-address')
  await mkdir(project)
  await writeFile(join(project, 'package.json'), JSON.stringify({ name: 'by-address' }))
  const { headers } = await fetch(`${base}/sdk`, { redirect: 'manual' })
  const address = base + headers.get('location')
  await run('npm', ['install', '--no-audit', '--no-fund', address], { cwd: project })
  for (const name of ['package.json', 'package-lock.json']) {
    const file = join(project, name)
    const before = await readFile(file, 'utf8')
    await writeFile(file, before.replaceAll(/-[0-9a-f]{16}\/confidential/g, '-0000000000000000/confidential'))
  }
  await rm(join(project, 'node_modules'), { recursive: true })
  const cache = join(directory, 'npm-cache')
  const install = run('npm', ['ci', '--no-audit', '--no-fund', '--cache', cache], { cwd: project })
  await expect(install).rejects.toMatchObject({ stderr: expect.stringContaining('410 Gone') })
})

test('/sdk redirects to the tarball of this build, which may be cached forever', async () => {
  const redirect = await fetch(`${base}/sdk`, { redirect: 'manual' })
  const location = redirect.headers.get('location') ?? ''
  expect([redirect.status, redirect.headers.get('cache-control')]).toEqual([302, 'no-store'])
  expect(location).toMatch(/^\/sdk\/\d+\.\d+\.\d+-[0-9a-f]{16}\/confidential-payroll-sdk\.tgz$/)
  const tarball = await fetch(base + location)
  expect(tarball.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
  const packed = await readFile(packedFile())
  expect(Buffer.from(await tarball.arrayBuffer()).equals(packed)).toBe(true)
  const other = await fetch(base + location.replace(/[0-9a-f]{16}/, '0'.repeat(16)))
  expect([other.status, await other.json()]).toMatchObject([410, { code: 'package-gone', path: location }])
  expect((await fetch(`${base}/sdk/elsewhere/confidential-payroll-sdk.tgz`)).status).toBe(404)
})

test('publint and arethetypeswrong find no problem in the tarball', async () => {
  const tarball = packedFile()
  expect((await run(tool('publint'), ['run', tarball, '--strict'])).stdout).toContain('All good!')
  // Every problem of an ES module fails the test; the profile ignores resolution modes that don't support ES modules.
  await expect(run(tool('attw'), [tarball, '--profile', 'esm-only'])).resolves.toBeDefined()
})
