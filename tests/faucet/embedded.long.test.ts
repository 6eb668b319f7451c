import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { POST } from '#app/api/funding/faucet/route.ts'
import { GET } from '#app/api/funding/vault/route.ts'
import { mintSession } from '#lib/auth/session.ts'
import { enrol, openTestNetwork, sendAndWait, type TestNetwork } from '#lib/cli/client/participants.ts'
import { readEnvironment } from '#lib/config/environment.ts'
import { provideService } from '#lib/server/services.ts'
import { type RunningService, startService } from '#lib/server/start.ts'
import { EMPTY, syncBalance } from '#lib/wallet/balance.ts'
import { buildMerge } from '#lib/wallet/calls.ts'

const directory = mkdtempSync(join(tmpdir(), 'payroll-funding-'))
let service: RunningService
let network: TestNetwork
beforeAll(async () => {
  service = await startService(
    readEnvironment({
      DATA_DIR: directory,
      DEVNET_PROOFS: 'stand-in',
      DEVNET_PORT: '0',
      DEVNET_CLOSE_MS: '200',
      BATCH_ENABLED: 'false',
    }),
  )
  provideService(Promise.resolve(service))
  // Its first start blocks everything else in the process for seconds on a busy machine.
  await service.database()
  network = await openTestNetwork(service.network.rpcUrl.replace(/rpc$/, 'deployment.json'))
})
afterAll(async () => {
  await service?.close()
  rmSync(directory, { recursive: true, force: true })
})

async function call(handler: typeof POST, method: string, path: string, sub: string) {
  const session = await mintSession(service.settings.sessions, { kind: 'ledger', sub }, new Date())
  const headers = { Authorization: `Bearer ${session}` }
  const response = await handler(
    new Request(`http://localhost:3000/api/funding/${path}`, { method, headers }),
    undefined,
  )
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

test('funds three concurrent users with the embedded database and ledger, and reports the sum in the vault', async () => {
  const holders = await Promise.all([enrol(network), enrol(network), enrol(network)])
  const addresses = holders.map(({ address }) => address)
  const [first = ''] = addresses
  const before = await call(GET, 'GET', 'vault', first)
  expect(before.body).toMatchObject({ vault: network.token })
  const answers = await Promise.all(addresses.map((address) => call(POST, 'POST', 'faucet', address)))
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
  expect((await call(POST, 'POST', 'faucet', first)).status).toBe(429)
  for (const holder of holders) {
    await sendAndWait(network, (await buildMerge(network, holder.signer, EMPTY)).signedXdr)
    const { spendable } = await syncBalance(network, holder)
    expect(spendable.value).toBe(1_000_0000000n)
  }
  const after = await call(GET, 'GET', 'vault', first)
  expect(Number(after.body.held) - Number(before.body.held)).toBe(3_000)
})
