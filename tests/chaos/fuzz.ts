import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Keypair } from '@stellar/stellar-sdk'
import { mintSession } from '#lib/auth/session.ts'
import { buildIfStale } from '#lib/cli/build.ts'
import { runCommand } from '#lib/cli/process/command.ts'
import { answers } from '#lib/cli/process/serve.ts'
import { isRefusalCode } from '#lib/refusal/refusal.ts'
import { startPostgres } from '../bench/postgres.ts'
import { freePort } from '../support/port.ts'
import { type FuzzedRequest, openGenerator } from './fuzzed-requests.ts'

const CONNECTIONS = 24
const HANG_MS = 10_000
const MAX_LINE_BYTES = 4096
const USERS = 200
const SECRET = 'a secret for one run of the fuzzer, long enough'

const USAGE = `npm run fuzz -- [--requests N] [--seed S]

Sends seeded malformed requests to a service on PostgreSQL whose ledger cannot be reached. Prints every 5xx without a
documented code, every response that takes longer than ten seconds, every leaked descriptor and every log line that is no
JSON object of at most 4 KB, and exits with 1 if there is one.`

await runCommand({
  usage: USAGE,
  options: { requests: { type: 'string', default: '10000' }, seed: { type: 'string', default: '1' } },
  explain: (error) => error,
  run: ({ requests, seed }) => fuzz(Number(requests), Number(seed)),
})

async function fuzz(requests: number, seed: number): Promise<void> {
  const postgres = await startPostgres(await freePort())
  const directory = await mkdtemp(join(tmpdir(), 'payroll-fuzz-'))
  const port = await freePort()
  const service = await startService(port, { DATABASE_URL: postgres.url, DATA_DIR: directory })
  const generate = openGenerator(seed, await mintSessions(port))
  const statuses = new Map<number, number>()
  const problems: string[] = []
  const report = (problem: string, { bytes }: FuzzedRequest) => {
    problems.push(problem)
    if (problems.length <= 50) console.log(`${problem}: ${JSON.stringify(bytes.slice(0, 600))}`)
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, () => exchange(port, openGenerator(0, [])())))
  const before = service.descriptors()
  let sent = 0
  const client = async () => {
    while (sent < requests) {
      sent += 1
      if (sent % 10_000 === 0) console.log(`${sent} requests, ${problems.length} problems`)
      const request = generate()
      const text = (await exchange(port, request))?.replace('HTTP/1.1 100 Continue\r\n\r\n', '')
      const status = Number(/^HTTP\/1.1 (\d+)/.exec(text ?? '')?.[1] ?? 0)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      if (text === undefined) report('no response within ten seconds', request)
      else if (status >= 500 && !isDocumented(text, request)) report(`undocumented ${status}`, request)
    }
  }
  const startedAt = performance.now()
  await Promise.all(Array.from({ length: CONNECTIONS }, client))
  const seconds = (performance.now() - startedAt) / 1000
  const isAlive = await answers(`http://127.0.0.1:${port}`)
  // Longer than the service waits for the rest of a request.
  for (let waited = 0; waited < 60 && service.descriptors() > before; waited += 1) await rest(1_000)
  const leaked = service.descriptors() - before
  const badLines = service.lines.filter((line) => !isLogLine(line))
  for (const line of badLines.slice(0, 20)) console.log(`log line: ${line.slice(0, 600)}`)
  const uncaught = service.lines.filter((line) => line.includes('uncaughtException')).length
  await service.stop()
  await postgres.stop()
  await rm(directory, { recursive: true, force: true })
  console.log(
    `statuses: ${[...statuses]
      .sort()
      .map((pair) => pair.join(' × '))
      .join(', ')}`,
  )
  console.log(`${requests} requests in ${seconds.toFixed(0)} s, ${service.lines.length} log lines`)
  console.log(`${problems.length} undocumented or late responses, ${leaked} more descriptors than before`)
  console.log(
    `${badLines.length} bad log lines, ${uncaught} uncaught exceptions, ${isAlive ? 'alive' : 'DEAD'} afterwards`,
  )
  // Connections to the database are kept open.
  process.exit(problems.length + badLines.length + uncaught > 0 || leaked > 15 || !isAlive ? 1 : 0)
}

function rest(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

async function startService(port: number, variables: Record<string, string>) {
  buildIfStale()
  const child = spawn(process.execPath, ['lib/cli/start.ts'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      NEXT_TELEMETRY_DISABLED: '1',
      PORT: String(port),
      SESSION_SECRET: SECRET,
      STELLAR_RPC_URL: 'http://127.0.0.1:1',
      SPONSOR_SEED: Keypair.random().secret(),
      OPERATOR_PASSWORD: 'the password of the fuzzer',
      TRUST_PROXY: '1',
      ...variables,
    },
  })
  const lines: string[] = []
  for (const stream of [child.stdout, child.stderr]) {
    let partial = ''
    stream.setEncoding('utf8').on('data', (text: string) => {
      const parts = (partial + text).split('\n')
      partial = parts.pop() ?? ''
      lines.push(...parts.filter(Boolean))
    })
  }
  while (!(await answers(`http://127.0.0.1:${port}`))) await rest(100)
  // The banner is text.
  lines.length = 0
  return {
    lines,
    descriptors: () => readdirSync(`/proc/${child.pid}/fd`).length,
    stop: () =>
      new Promise((resolve) => {
        child.once('exit', resolve)
        child.kill('SIGTERM')
      }),
  }
}

async function mintSessions(port: number): Promise<string[]> {
  const origin = `http://localhost:${port}`
  const settings = { secret: SECRET, issuer: origin, audience: `${origin}/api`, ttl: 36_000 }
  const users = Array.from({ length: USERS }, () => Keypair.random().publicKey())
  return await Promise.all(users.map((sub) => mintSession(settings, { kind: 'ledger', sub }, new Date())))
}

/** Sends the request. Resolves to the response, or to undefined if the connection is still open after ten seconds. */
function exchange(port: number, { bytes, hangUpMs }: FuzzedRequest): Promise<string | undefined> {
  return new Promise((resolve) => {
    let text = ''
    const socket = connect(port, '127.0.0.1')
    const timer = setTimeout(() => {
      resolve(hangUpMs === undefined ? undefined : text)
      socket.destroy()
    }, hangUpMs ?? HANG_MS)
    socket.setEncoding('latin1')
    socket.on('data', (part) => {
      if (text.length < 100_000) text += part
    })
    socket.on('error', () => undefined)
    socket.on('close', () => {
      clearTimeout(timer)
      resolve(text)
    })
    socket.write(bytes, 'latin1')
  })
}

/** Whether a 5xx has an error code that the documentation lists. */
function isDocumented(text: string, { bytes }: FuzzedRequest): boolean {
  const [, code] = /"code":"([a-z-]+)"/.exec(text.slice(text.indexOf('\r\n\r\n'))) ?? []
  if (code !== undefined) return isRefusalCode(code) && code !== 'internal'
  // HEAD has no body, GET /ready lists what is missing, and a page that has to wait is text.
  return /^HTTP\/1.1 503 /.test(text) || (bytes.startsWith('HEAD ') && /^HTTP\/1.1 501 /.test(text))
}

function isLogLine(line: string): boolean {
  try {
    return typeof JSON.parse(line).event === 'string' && Buffer.byteLength(line) <= MAX_LINE_BYTES
  } catch {
    return false
  }
}
