import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Keypair } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { readEnvironment } from '#lib/config/environment.ts'
import { admitUser } from '#lib/directory/users.ts'
import { readJob, startJob } from '#lib/relay/job.ts'
import { readiness } from '#lib/server/readiness.ts'
import { type RunningService, startService } from '#lib/server/start.ts'
import { captureLog } from '../support/console.ts'
import { freePort } from '../support/port.ts'

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'payroll-embedded-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

async function start(own: Record<string, string> = {}): Promise<{ service: RunningService; relayUrl: string }> {
  const [devnet, relay] = [await freePort(), await freePort()]
  const variables = {
    DATA_DIR: directory,
    DEVNET_PROOFS: 'stand-in',
    DEVNET_PORT: `${devnet}`,
    RELAY_PORT: `${relay}`,
    DEVNET_CLOSE_MS: '200',
    ...own,
  }
  return { service: await startService(readEnvironment(variables)), relayUrl: `http://localhost:${relay}` }
}

/** Two channels, so that one of three lines is proved ahead: without contractors a job pays the other channel. */
test('registers channels and pays a job with real proofs, and logs the progress of each proof', async () => {
  const lines = captureLog()
  onTestFinished(() => void vi.restoreAllMocks())
  const own = mkdtempSync(join(tmpdir(), 'payroll-embedded-'))
  onTestFinished(() => rmSync(own, { recursive: true, force: true }))
  const CHANNEL_SEEDS = [Keypair.random().secret(), Keypair.random().secret()].join()
  const { service } = await start({ DATA_DIR: own, DEVNET_PROOFS: 'real', CHANNEL_SEEDS, DEVNET_CLOSE_MS: '1000' })
  try {
    const job = await runJob(service, [1, 2, 3])
    expect(job).toMatchObject({ status: 'completed' })
    expect(job.results.map(({ status }) => status)).toEqual(['SUCCESS', 'SUCCESS', 'SUCCESS'])
    const told = lines.flatMap((line) => /"progress":"(proving \d of \d)/.exec(line)?.[1] ?? [])
    // A repeated attempt is logged again under its first number.
    expect(Array.from(new Set(told))).toEqual([
      ...[1, 2].map((channel) => `proving ${channel} of 2`),
      ...[1, 2, 3].map((transfer) => `proving ${transfer} of 3`),
    ])
  } finally {
    await service.close()
  }
})

async function runJob(service: RunningService, amounts: number[]) {
  const db = await service.database()
  const identity = { kind: 'ledger', sub: Keypair.random().publicKey() } as const
  const user = await admitUser({ db, now: new Date() }, identity)
  if (!service.batch) throw new Error('batches are off')
  const { jobId } = await startJob({ db, batch: service.batch, user, now: new Date() }, { amounts })
  await expect.poll(async () => (await readJob({ db, session: identity }, jobId)).status).not.toBe('running')
  return await readJob({ db, session: identity }, jobId)
}

test('runs a job on PGlite right after the first start, and another one after a restart', async () => {
  const first = await start()
  try {
    // Posted while the channels are being prepared: the job waits for them.
    expect(await runJob(first.service, [1, 2, 3, 4])).toMatchObject({ status: 'completed' })
    expect((await readiness({ ...first.service })).relay).toEqual({ ok: true, channels: 3, runs: true })
    const discovery = await fetch(`${first.relayUrl}/.well-known/disbursement-relay`)
    expect(await discovery.json()).toMatchObject({ network: 'local', publicKey: { kty: 'EC' } })
  } finally {
    await first.service.close()
  }
  const second = await start()
  try {
    expect(await runJob(second.service, [5])).toMatchObject({ status: 'completed', results: [{ status: 'SUCCESS' }] })
  } finally {
    await second.service.close()
  }
})
