import { Asset, Keypair, Operation } from '@stellar/stellar-sdk'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { FAUCET, type Faucet, type Grant, openFaucet, type Person, startAnother } from '../faucet/faucet.ts'
import { type MortalService, startMortal } from '../support/mortal.ts'
import { openTestService, type TestService } from '../support/test-service.ts'
import { killAt, type NamedStep, openSteps, type Steps } from './crash-steps.ts'

let service: TestService<'embedded'>
let faucet: Faucet
let steps: Steps
beforeAll(async () => {
  service = await openTestService(FAUCET)
  faucet = openFaucet(service)
  steps = await openSteps(service.ledger.proxy, service.database.url)
})
afterAll(async () => {
  await steps?.close()
  await service?.close()
})
afterEach(() => service.ledger.proxy.rule(null))

/** A service that requests a grant for `person`. */
async function startRequest({ session }: Person, variables: Record<string, string> = {}): Promise<MortalService> {
  const program = await startMortal({ ...service.variables, ...variables }, { choresEveryMs: 0 })
  void faucet.ask(session, program.running)
  return program
}

/** The table of transfers, which recording and settling a deposit lock. */
const LOCK = 'LOCK TABLE transfers IN SHARE MODE'

/** The step, and the deposit after the process has ended; its requests may still be carried out. */
const STEPS: [...NamedStep<Person>, (Grant['status'] | 'none')[]][] = [
  ['before the account is read', ({ beforeCall }) => beforeCall('getLedgerEntries'), ['none']],
  ['before the deposit is simulated', ({ beforeCall }) => beforeCall('simulateTransaction'), ['none']],
  ['after it is simulated, before it is recorded', ({ afterCall }) => afterCall('simulateTransaction'), ['none']],
  [
    'while it is recorded',
    ({ atLock }) => atLock(LOCK, { from: 'simulateTransaction' }),
    ['none', 'signed', 'granted'],
  ],
  ['between record and sending', ({ beforeCall }) => beforeCall('sendTransaction'), ['signed']],
  ['after it is sent, before the answer', ({ afterCall }) => afterCall('sendTransaction'), ['signed']],
  ['before the first look', ({ beforeCall }) => beforeCall('getTransaction'), ['signed']],
  ['at a look, before its answer', ({ afterCall }) => afterCall('getTransaction'), ['signed']],
  ['while it is settled', ({ atLock }) => atLock(LOCK, { from: 'getTransaction' }), ['signed', 'granted']],
]

test.each(STEPS)('ends %s: makes one deposit, even though two users ask next', async (_, step, left) => {
  const person = await faucet.settle()
  await killAt(step(steps, person), await startRequest(person))
  const before = await faucet.grant(person.address)
  expect(left).toContain(before?.status ?? 'none')
  expect((await faucet.ask(person.session)).status).toBe(before ? 429 : 200)
  // Another user of the faucet waits for the deposit that holds its account.
  expect((await faucet.ask((await faucet.settle()).session)).status).toBe(200)
  await expect.poll(async () => (await faucet.grant(person.address))?.status).toBe('granted')
  const after = await faucet.grant(person.address)
  expect(await faucet.deposits(person.address)).toEqual([after?.hash])
  // The recorded transaction is the one that was applied.
  if (before) expect(after?.hash).toBe(before.hash)
})

test('resumes in a new process a deposit that was open when the old one was killed', async () => {
  const person = await faucet.settle()
  await killAt(steps.beforeCall('sendTransaction'), await startRequest(person))
  const another = await startAnother(service)
  await expect.poll(async () => (await faucet.grant(person.address))?.status).toBe('granted')
  expect(await faucet.deposits(person.address)).toHaveLength(1)
  await another.close()
})

test('submits and settles a deposit of another faucet whose key is no longer configured', async () => {
  const { network, issuer } = service.ledger
  const former = Keypair.random()
  await fetch(`${network.friendbotUrl}?addr=${former.publicKey()}`)
  const usdc = new Asset('USDC', issuer.publicKey())
  await faucet.perform(former, Operation.changeTrust({ asset: usdc }))
  await faucet.perform(issuer, Operation.payment({ destination: former.publicKey(), asset: usdc, amount: '1500' }))

  const person = await faucet.settle()
  const gone = await startRequest(person, { FAUCET_SEED: former.secret() })
  await killAt(steps.beforeCall('sendTransaction'), gone)
  expect(await faucet.grant(person.address)).toMatchObject({ status: 'signed', faucet: former.publicKey() })

  const another = await startAnother(service)
  const follower = await faucet.settle()
  expect(await faucet.ask(follower.session)).toMatchObject({ status: 200 })
  await expect.poll(async () => (await faucet.grant(person.address))?.status).toBe('granted')
  expect(await faucet.deposits(person.address)).toHaveLength(1)
  expect(await faucet.grant(follower.address)).toMatchObject({ faucet: issuer.publicKey() })
  await another.close()
})
