import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { Asset, Keypair, Operation } from '@stellar/stellar-sdk'
import { sql } from 'drizzle-orm'
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { Fault } from '../support/fault-proxy.ts'
import { openTestService, type TestService } from '../support/test-service.ts'
import { FAUCET, type Faucet, type Grant, openFaucet, type Person, startAnother } from './faucet.ts'

let service: TestService<'embedded'>
let faucet: Faucet
beforeAll(async () => {
  service = await openTestService(FAUCET)
  faucet = openFaucet(service)
})
afterAll(() => service?.close())
afterEach(() => service.ledger.proxy.rule(null))

/** A service in a process of its own that asks for `person`. */
function startProcess({ session }: Person, variables: Record<string, string> = {}): ChildProcess {
  const program = new URL('faucet-process.ts', import.meta.url).pathname
  return spawn(process.execPath, [program], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, ...service.variables, ...variables, SESSION: session },
  })
}

/** SIGKILL, once the process is at the step. */
async function killAt(reached: Promise<void>, child: ChildProcess): Promise<void> {
  const gone = once(child, 'exit')
  await Promise.race([reached, gone.then(() => Promise.reject(new Error('the process ended by itself')))])
  child.kill('SIGKILL')
  await gone
  expect(child.signalCode).toBe('SIGKILL')
}

/** Resolves once the process is at the step, which it does not get past before it is killed. */
type Step = (person: Person) => { reached: Promise<void>; letGo: () => Promise<void> }

/** It has asked the RPC this; `delivered` lets the call through and withholds the answer. */
const atCall =
  (method: string, { delivered }: { delivered: boolean }): Step =>
  () => {
    const reached = new Promise<void>((resolve) => {
      service.ledger.proxy.rule((call): Fault => {
        if (call.method !== method) return 'pass'
        // The network has a moment to take in what was delivered.
        setTimeout(resolve, delivered ? 50 : 0)
        return { hang: true, delivered }
      })
    })
    return { reached, letGo: async () => service.ledger.proxy.rule(null) }
  }

/** It waits for the row of the grant, which this test has locked since the process first called `when`. */
const atRow =
  (when: string): Step =>
  ({ address }) => {
    const holder = new Client({ connectionString: service.database.url })
    const take = async () => {
      await holder.connect()
      await holder.query('BEGIN')
      await holder.query('SELECT 1 FROM grants WHERE account = $1 FOR UPDATE', [address])
    }
    const reached = new Promise<void>((resolve, reject) => {
      let taken: Promise<void> | undefined
      service.ledger.proxy.rule(async (call): Promise<Fault> => {
        if (call.method !== when) return 'pass'
        taken ??= take().then(() => void waitForBlocked().then(resolve, reject), reject)
        await taken
        return 'pass'
      })
    })
    return {
      reached,
      letGo: async () => {
        service.ledger.proxy.rule(null)
        await holder.end()
      },
    }
  }

async function waitForBlocked(): Promise<void> {
  for (;;) {
    const { rows } = (await service.db.execute(
      sql`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    )) as unknown as { rows: unknown[] }
    if (rows.length > 0) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** The step, and what stands in the database when the process is gone; what it has asked for may still be done. */
const STEPS: [string, Step, Grant['status'] | 'none', Grant['status']?][] = [
  ['before the grant is claimed', atCall('getLedgerEntries', { delivered: false }), 'none'],
  ['before the deposit is simulated', atCall('simulateTransaction', { delivered: false }), 'claimed'],
  ['after it is simulated, before it is written down', atCall('simulateTransaction', { delivered: true }), 'claimed'],
  ['while it is written down', atRow('simulateTransaction'), 'claimed'],
  ['between record and sending', atCall('sendTransaction', { delivered: false }), 'signed'],
  ['after it is sent, before the answer', atCall('sendTransaction', { delivered: true }), 'signed'],
  ['before the first look', atCall('getTransaction', { delivered: false }), 'signed'],
  ['at a look, before its answer', atCall('getTransaction', { delivered: true }), 'signed'],
  ['while the grant is settled', atRow('getTransaction'), 'signed', 'granted'],
]

test.each(STEPS)('SIGKILL %s: one deposit, whoever asks next', async (_, step, left, or) => {
  const person = await faucet.settle()
  const { reached, letGo } = step(person)
  const child = startProcess(person)
  await killAt(reached, child)
  await letGo()
  const before = await faucet.grant(person.address)
  expect([left, or]).toContain(before?.status ?? 'none')
  const isSigned = before?.status === 'signed' || before?.status === 'granted'
  if (before?.status === 'claimed') {
    expect((await faucet.ask(person.session)).status).toBe(429)
    // The claim was left behind: nothing is signed for it, and nothing will be.
    await faucet.age(person.address)
  }
  expect((await faucet.ask(person.session)).status).toBe(isSigned ? 429 : 200)
  // Another user of the faucet waits for the deposit that holds its account.
  expect((await faucet.ask((await faucet.settle()).session)).status).toBe(200)
  await expect.poll(async () => (await faucet.grant(person.address))?.status).toBe('granted')
  const after = await faucet.grant(person.address)
  expect(await faucet.deposits(person.address)).toEqual([after?.hash])
  // What was written down is what stands on the ledger.
  if (isSigned) expect(after?.hash).toBe(before?.hash)
})

test('what was open at a SIGKILL is taken up by the next process at its start', async () => {
  const person = await faucet.settle()
  const { reached, letGo } = atCall('sendTransaction', { delivered: false })(person)
  const child = startProcess(person)
  await killAt(reached, child)
  await letGo()
  const another = await startAnother(service)
  await expect.poll(async () => (await faucet.grant(person.address))?.status).toBe('granted')
  expect(await faucet.deposits(person.address)).toHaveLength(1)
  await another.close()
})

test('a deposit of another faucet, whose key is gone, is sent and settled all the same', async () => {
  const { network, issuer } = service.ledger
  const former = Keypair.random()
  await fetch(`${network.friendbotUrl}?addr=${former.publicKey()}`)
  const usdc = new Asset('USDC', issuer.publicKey())
  await faucet.perform(former, Operation.changeTrust({ asset: usdc }))
  await faucet.perform(issuer, Operation.payment({ destination: former.publicKey(), asset: usdc, amount: '1500' }))

  const person = await faucet.settle()
  const { reached, letGo } = atCall('sendTransaction', { delivered: false })(person)
  const child = startProcess(person, { FAUCET_SEED: former.secret() })
  await killAt(reached, child)
  await letGo()
  expect(await faucet.grant(person.address)).toMatchObject({ status: 'signed', faucet: former.publicKey() })

  const another = await startAnother(service)
  const follower = await faucet.settle()
  expect(await faucet.ask(follower.session)).toMatchObject({ status: 200 })
  await expect.poll(async () => (await faucet.grant(person.address))?.status).toBe('granted')
  expect(await faucet.deposits(person.address)).toHaveLength(1)
  expect(await faucet.grant(follower.address)).toMatchObject({ faucet: issuer.publicKey() })
  await another.close()
})
