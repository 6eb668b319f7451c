import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { deliverDue } from '#lib/events/delivery.ts'
import { CHILD_VARIABLES } from '../support/child-variables.ts'
import { freePort } from '../support/port.ts'
import { openStage, type Stage } from './stage.ts'

// The receiver of docs/events.md, as a program of its own.

let stage: Stage
let directory: string
beforeAll(async () => {
  stage = await openStage()
  directory = mkdtempSync(join(tmpdir(), 'payroll-receiver-'))
  const modules = join(directory, 'node_modules')
  const sdk = join(modules, 'confidential-payroll-sdk')
  mkdirSync(sdk, { recursive: true })
  writeFileSync(
    join(sdk, 'package.json'),
    JSON.stringify({ type: 'module', exports: { './webhooks': './webhooks.js' } }),
  )
  writeFileSync(join(sdk, 'webhooks.js'), `export * from '${new URL('../../lib/sdk/webhooks.ts', import.meta.url)}'`)
  symlinkSync(new URL('../../node_modules/standardwebhooks', import.meta.url), join(modules, 'standardwebhooks'))
  const [, program = ''] =
    /^```js\n(import \{ createServer \}[\s\S]*?)```/m.exec(readFileSync('docs/events.md', 'utf8')) ?? []
  expect(program.trimEnd().split('\n').length).toBeLessThan(25)
  writeFileSync(join(directory, 'receiver.mjs'), program)
})
afterAll(async () => {
  await stage.close()
  rmSync(directory, { recursive: true, force: true })
})

/** Starts the receiver; `lines` has what it prints. */
async function startReceiver(port: number, secret: string) {
  const env = { ...CHILD_VARIABLES, PORT: String(port), WEBHOOK_SECRET: secret }
  const child: ChildProcess = spawn(process.execPath, ['receiver.mjs'], {
    cwd: directory,
    env: env as unknown as NodeJS.ProcessEnv,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines: string[] = []
  if (child.stdout) createInterface(child.stdout).on('line', (line) => lines.push(line))
  await expect.poll(() => lines, { timeout: 20_000 }).toContain('listening')
  const stop = async () => {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  return { lines, stop }
}

test('the receiver of the documentation takes signed events, each once, and nothing else', async () => {
  const { session, organisation } = await stage.employer()
  const port = await freePort()
  const url = `http://localhost:${port}/payroll-events`
  const { id, secret } = await stage.hook(session, url)
  const receiver = await startReceiver(port, secret)
  const trial = await stage.ask('POST', `/webhooks/${id}/test`, { session })
  expect(trial.body).toMatchObject({ delivered: true, responseStatus: 204 })

  await stage.happen(organisation, ['payout.paid'], ['contractor.created'])
  expect(await deliverDue(stage.webhooks)).toBe(2)
  const paid = () => receiver.lines.filter((line) => line.startsWith('paid')).length
  await expect.poll(paid).toBe(1)
  const again = (await stage.deliveriesOf(id)).find(({ type }) => type === 'payout.paid')
  await stage.ask('POST', `/webhooks/${id}/deliveries/${again?.id}/redeliver`, { session })
  await stage.happen(organisation, ['payout.paid'])
  expect(await deliverDue(stage.webhooks)).toBe(2)
  await expect.poll(paid).toBe(2)
  expect((await stage.deliveriesOf(id)).map(({ status }) => status)).toEqual(['delivered', 'delivered', 'delivered'])

  const forged = await fetch(url, { method: 'POST', body: '{"id":"1-a","type":"payout.paid","data":{}}' })
  expect(forged.status).toBe(401)
  expect(paid()).toBe(2)
  await receiver.stop()
})
