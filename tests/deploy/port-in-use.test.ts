import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { freePort } from '../support/port.ts'

test.each(['start.ts', 'dev.ts'])('%s names the port that another program uses, and what to do', async (program) => {
  const directory = mkdtempSync(join(tmpdir(), 'payroll-port-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const port = await freePort()
  const server = createServer().listen(port, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const { status, stderr } = spawnSync(process.execPath, [resolve('lib/cli', program)], {
    cwd: directory,
    encoding: 'utf8',
    env: { ...process.env, PORT: String(port) },
  })
  expect([status, stderr]).toEqual([1, expect.stringMatching(`^Port ${port} is in use\\. .* or set PORT\\.\n$`)])
})
