import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from './support/port.ts'
import { type Program, startProgram } from './support/program.ts'

const run = promisify(execFile)
const root = new URL('..', import.meta.url).pathname

let directory: string
let program: Program
let ports: { service: number; devnet: number }
let readme: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'payroll-readme-'))
  ports = { service: await freePort(), devnet: await freePort() }
  program = await startProgram(`http://localhost:${ports.service}`, variables())
  const pages = ['README.md', 'docs/walkthrough.md'].map((page) => readFile(join(root, page), 'utf8'))
  const text = (await Promise.all(pages)).join('\n')
  readme = text
    .replaceAll('localhost:3000', `localhost:${ports.service}`)
    .replaceAll('localhost:8000', `localhost:${ports.devnet}`)
})
afterAll(async () => {
  await program?.kill()
  await rm(directory, { recursive: true, force: true })
})

/** The embedded defaults, on ports of the test's own. */
function variables(): Record<string, string> {
  return {
    PORT: String(ports.service),
    DEVNET_PORT: String(ports.devnet),
    RELAY_PORT: '0',
    DEVNET_PROOFS: 'real',
    DATA_DIR: join(directory, 'data'),
  }
}

/** The blocks of README and walkthrough that are marked as tested, in order, by language. */
function testedBlocks(language: string): string[] {
  const blocks = readme.matchAll(/<!-- tested:[^>]*-->\n```(\w+)\n([\s\S]*?)```/g)
  return Array.from(blocks, ([, found, code]) => (found === language ? (code ?? '') : '')).filter(Boolean)
}

test('the shell blocks work as printed', async () => {
  const script = testedBlocks('sh')
  expect(script.length).toBeGreaterThan(0)
  // The wallet runs in the project's folder; files written by the commands are elsewhere.
  const lines = script
    .join('\n')
    .replaceAll(/\b(transfer|request|requester|bundle|statement)\.(xdr|json|html)\b/g, `${directory}/$&`)
  const { stdout } = await run('bash', ['-euo', 'pipefail', '-c', lines], {
    cwd: root,
    env: { ...process.env, ...variables() },
  })
  const printed = script
    .join('\n')
    .split('\n')
    .flatMap((line) => /^# → (.*)$/.exec(line)?.[1] ?? [])
  expect(printed.length).toBeGreaterThan(5)
  const escaped = printed.map((line) => line.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll('…', '.*'))
  expect(stdout).toMatch(new RegExp(escaped.join('[^]*?')))
  expect(stdout).not.toContain('"error"')
})
