import { spawn } from 'node:child_process'
import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildIfStale } from '#lib/cli/build.ts'
import { answers } from '#lib/cli/process/serve.ts'
import { openProgramService } from '../support/program.ts'
import { rawRequest } from '../support/raw-request.ts'
import type { TestService } from '../support/test-service.ts'

const SECRET = 'hunter2'
let service: TestService<'embedded'>
let base: string
let stop: () => void
const lines: string[] = []

beforeAll(async () => {
  ;({ service, base } = await openProgramService({ OPERATOR_PASSWORD: 'the password of the test' }))
  buildIfStale()
  const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1', ...service.variables }
  const child = spawn(process.execPath, ['lib/cli/start.ts'], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  stop = () => child.kill('SIGKILL')
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => lines.push(...text.split('\n').filter(Boolean)))
  }
  while (!(await answers(base))) await new Promise((resolve) => setTimeout(resolve, 100))
})
afterAll(async () => {
  stop?.()
  await service?.close()
})

test('logs the failure of a page once, as one JSON object without the parameters of the query', async () => {
  const signedIn = await rawRequest(base, '/sign-in/password', {
    method: 'POST',
    headers: { Origin: base, 'Content-Type': 'application/x-www-form-urlencoded' },
    body: 'name=Ada&password=the+password+of+the+test',
  })
  const cookie = (signedIn.headers['set-cookie'] ?? []).map((each) => each.split(';', 1)[0]).join('; ')
  expect((await rawRequest(base, `/search?q=${SECRET}`, { headers: { Cookie: cookie } })).status).toBe(200)
  await service.db.execute(sql`ALTER TABLE batches RENAME TO renamed`)
  lines.length = 0
  const { status, text } = await rawRequest(base, `/search?q=${SECRET}`, {
    headers: { Cookie: cookie, 'X-Request-Id': 'the-failing-page' },
  })
  expect([status, text.includes('Failed query')]).toEqual([500, false])
  await expect.poll(() => lines.length).toBeGreaterThan(0)
  await new Promise((resolve) => setTimeout(resolve, 500))
  const entries = lines.map((line) => JSON.parse(line) as Record<string, string>)
  const failures = entries.filter(({ level }) => level === 'error')
  expect(failures).toEqual([
    expect.objectContaining({
      event: 'console',
      requestId: 'the-failing-page',
      message: expect.stringContaining('42P01'),
    }),
  ])
  // The stack names source files, not chunks of the build.
  expect(failures[0]?.message).toMatch(/at async \S+ \(lib\/dashboard\/[\w-]+\.ts:\d+:\d+\)/)
  expect(failures[0]?.message).not.toContain('.next/server')
  expect(lines.join()).not.toContain(SECRET)
  for (const line of lines) expect(Buffer.byteLength(line)).toBeLessThanOrEqual(4096)
})
