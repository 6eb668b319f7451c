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
  const pages = ['README.md', 'docs/walkthrough.md', 'docs/runs.md', 'docs/disclosure.md'].map((page) =>
    readFile(join(root, page), 'utf8'),
  )
  const text = (await Promise.all(pages)).join('\n')
  readme = text
    .replaceAll('localhost:3000', `localhost:${ports.service}`)
    .replaceAll('localhost:8000', `localhost:${ports.devnet}`)
    .replaceAll('=.data/', `=${directory}/data/`)
})
afterAll(async () => {
  await program?.kill()
  await rm(directory, { recursive: true, force: true })
})

/**
 * The ledgers that the RPC keeps, and how fast they close (ms): more than a minute and a half, while the archive may lag by
 * 50 s. The relay expects one ledger a second: if they closed faster, a delegation would end before its payout is proved.
 */
const [HISTORY, CLOSE_MS] = [100, 1000]

/** Some thirty commands, nine of them with real proofs, take minutes on a machine that is busy with much else. */
const LONGEST_JOURNEY_MS = 30 * 60_000

/** The embedded defaults, on separate ports. The RPC drops the first payments during the journey. */
function variables(): Record<string, string> {
  return {
    PORT: String(ports.service),
    DEVNET_PORT: String(ports.devnet),
    RELAY_PORT: '0',
    DEVNET_PROOFS: 'real',
    DEVNET_CLOSE_MS: String(CLOSE_MS),
    DEVNET_HISTORY_LEDGERS: String(HISTORY),
    DATA_DIR: join(directory, 'data'),
  }
}

/** The blocks of the pages that are marked as tested, in order, by language. */
function testedBlocks(language: string): string[] {
  const blocks = readme.matchAll(/<!-- tested:[^>]*-->\n```(\w+)\n([\s\S]*?)```/g)
  return Array.from(blocks, ([, found, code]) => (found === language ? (code ?? '') : '')).filter(Boolean)
}

/** Shell lines that print a number of the RPC's health, such as oldestLedger. */
const health = (field: string) =>
  `curl -s localhost:${ports.devnet}/rpc -d '{"jsonrpc":"2.0","id":1,"method":"getHealth"}' -H 'Content-Type: application/json' | grep -o '"${field}":[0-9]*' | cut -d: -f2`

/** Not in the printed commands: the bank asks only after the RPC has dropped the first payment. */
function withPassingMonths(script: string[]): string {
  const [readme = '', ...walkthrough] = script
  const bank = '# the bank: '
  const wait = `until [ "$(${health('oldestLedger')})" -gt "$FIRST" ]; do sleep 1; done\n`
  const journey = walkthrough.join('\n').replace(bank, () => `${wait}${bank}`)
  expect(journey).toContain(wait)
  return [readme, `FIRST=$(${health('latestLedger')})`, journey].join('\n')
}

test('the shell blocks work as printed', { timeout: LONGEST_JOURNEY_MS }, async () => {
  const script = testedBlocks('sh')
  expect(script.length).toBeGreaterThan(0)
  // The wallet runs in the project's folder; files written by the commands are elsewhere.
  const lines = withPassingMonths(script).replaceAll(
    /\b(transfer|request|requester|bundle|statement|audit|amounts|delegate|revoke|run)\.(xdr|json|html|csv)\b/g,
    `${directory}/$&`,
  )
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
  // The first month is in the archive only.
  expect(stdout).toMatch(/verified .* 92\.5000000\n.*\n.*read from http:\S+\/api\/archive\n/)
})
