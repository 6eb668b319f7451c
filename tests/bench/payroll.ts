import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { Keypair } from '@stellar/stellar-sdk'
import { enrol, openTestNetwork, sendAndWait, type TestNetwork } from '#lib/cli/client/participants.ts'
import { connectWallet, sponsorTransfer } from '#lib/cli/client/wallet-session.ts'
import { followBatch, prepareBatch, sealAmount } from '#lib/cli/demo/payroll-steps.ts'
import { awaitRelay, runRelayBatch } from '#lib/cli/demo/relay-batch.ts'
import { startServing } from '#lib/cli/process/serve.ts'
import { type PayrollClient, PayrollError, take } from '#lib/sdk/payroll-client.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { buildMerge, buildTransfer } from '#lib/wallet/calls.ts'
import type { Opening } from '#lib/wallet/commitment.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import { freePort } from '../support/port.ts'
import { openArrivals } from './arrivals.ts'
import type { Figure } from './directory.ts'

const EMPLOYERS = 25
const PAYOUTS = 8
const PAYOUTS_IN_ALL = EMPLOYERS * PAYOUTS
/** The number of registrations that fit into a ledger. */
const SIDE_BY_SIDE = 8
const AMOUNT = 1_000n

interface Employer {
  holder: Holder
  client: PayrollClient
  opening: Opening
  contractors: { id: string; address: string }[]
}

/** Two hundred payouts that compete for the same ledgers, with the room that testnet has. */
export async function measurePayroll(): Promise<Figure[]> {
  const directory = await mkdtemp(join(tmpdir(), 'payroll-bench-'))
  const [port, ledgerPort, relayPort] = [await freePort(), await freePort(), await freePort()]
  const base = `http://localhost:${port}`
  const serving = await startServing(base, {
    PORT: String(port),
    PUBLIC_URL: base,
    DATA_DIR: directory,
    DEVNET_PORT: String(ledgerPort),
    RELAY_PORT: String(relayPort),
    DEVNET_PROOFS: 'stand-in',
    CHANNEL_SEEDS: Array.from({ length: 10 }, () => Keypair.random().secret()).join(),
  })
  try {
    // The channels are registered first: a full queue refuses a registration, which is not sent again.
    const problem = await awaitRelay(base, () => undefined)
    if (problem !== undefined) throw new Error(problem)
    const network = await openTestNetwork(`http://localhost:${ledgerPort}/deployment.json`)
    const payees = await inGroups(EMPLOYERS, () => enrol(network))
    const addresses = payees.map(({ signer }) => signer.publicKey())
    const employers = await inGroups(EMPLOYERS, (index) => employ(network, base, rotate(addresses, index)))
    const arrivals = await openArrivals(network)
    const webhook = { url: arrivals.url, types: ['payout.paid' as const] }
    await Promise.all(employers.map(({ client }) => take(client.POST('/webhooks', { body: webhook }))))
    const paid = await payBatches(network, employers)
    const arrived = await arrivals.measure(paid.hashes)
    await arrivals.close()
    return [paid.figure, arrived, await measureJobs(network, employers)]
  } finally {
    await serving.stop()
    await rm(directory, { recursive: true, force: true })
  }
}

/** An employer with a balance and contractors; the faucet serves employers one at a time. */
async function employ(network: TestNetwork, base: string, addresses: string[]): Promise<Employer> {
  const holder = await enrol(network)
  const client = await connectWallet(base, holder.signer)
  await patiently(() => take(client.POST('/funding/faucet')))
  await sendAndWait(network, (await buildMerge(network, holder.signer)).signedXdr)
  const { spendable } = await syncBalance(network, holder)
  const rows = addresses.slice(0, PAYOUTS).map((payee, index) => ({ name: `Contractor ${index + 1}`, address: payee }))
  const { imported } = await take(client.POST('/contractors/bulk', { body: { rows } }))
  const contractors = imported.map(({ id }, index) => ({ id, address: addresses[index] ?? '' }))
  return { holder, client, opening: spendable, contractors }
}

/** Every employer pays its own batch, one payout at a time; all employers pay at the same time. */
async function payBatches(network: TestNetwork, employers: Employer[]) {
  let asked = 0
  const paid = await Promise.all(
    employers.map(async ({ client, holder, contractors, ...employer }) => {
      const encryptedAmount = sealAmount(holder.keys.vk, '0.0001')
      const instructions = contractors.map(({ id }) => ({ contractorId: id, encryptedAmount }))
      const batch = await prepareBatch(client, 'payroll', instructions)
      let { opening } = employer
      const hashes: string[] = []
      for (const [index, { address }] of contractors.entries()) {
        const { signedXdr, next } = await buildTransfer(network, holder, { to: address, amount: AMOUNT, opening })
        hashes.push(
          await patiently(() => {
            asked += 1
            return sponsorTransfer(client, signedXdr, batch.payoutIds[index])
          }),
        )
        opening = next
      }
      const { status } = await followBatch(client, batch.id, () => undefined)
      if (status !== 'completed') throw new Error(`a batch is ${status}`)
      return hashes
    }),
  )
  const name = `${PAYOUTS_IN_ALL} payouts of ${EMPLOYERS} employers at once`
  const hashes = paid.flat()
  const found = `${await ledgersOf(network, hashes)}, ${asked} requests`
  const figure: Figure = { name, found, goal: 'all paid, 8 in a ledger' }
  return { hashes, figure }
}

/** The same through the relay: every employer hands it a job. */
async function measureJobs(network: TestNetwork, employers: Employer[]): Promise<Figure> {
  const amounts = Array.from({ length: PAYOUTS }, () => AMOUNT)
  const paid = await Promise.all(
    employers.map(async ({ client }) => {
      const said: string[] = []
      const status = await runRelayBatch(client, amounts, (line) => said.push(line))
      if (status !== 'completed') throw new Error(`a job is ${status}: ${said.at(-1)}`)
      return said.flatMap((line) => /SUCCESS {2}(\w{64})/.exec(line)?.[1] ?? [])
    }),
  )
  const name = `${PAYOUTS_IN_ALL} lines of ${EMPLOYERS} jobs at once, 10 channels`
  return { name, found: await ledgersOf(network, paid.flat()), goal: 'all paid, 8 in a ledger' }
}

async function ledgersOf(network: TestNetwork, hashes: string[]): Promise<string> {
  const found = await Promise.all(hashes.map((hash) => network.rpc.getTransaction(hash)))
  const ledgers = found.flatMap((one) => (one.status === 'SUCCESS' ? [one.ledger] : []))
  const span = Math.max(...ledgers) - Math.min(...ledgers) + 1
  return `${new Set(hashes).size} paid in ${span} ledgers`
}

/** Polls the open ones, as a client of the service does. */
async function patiently<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  const deadline = Date.now() + 600_000
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof PayrollError) || Date.now() > deadline) throw error
      if (error.code !== 'transfer-open' && error.status !== 409 && error.status !== 503) throw error
      await setTimeout(1_000)
    }
  }
}

async function inGroups<Item>(count: number, make: (index: number) => Promise<Item>): Promise<Item[]> {
  const made: Item[] = []
  while (made.length < count) {
    const size = Math.min(SIDE_BY_SIDE, count - made.length)
    made.push(...(await Promise.all(Array.from({ length: size }, (_, index) => make(made.length + index)))))
  }
  return made
}

const rotate = <Item>(items: Item[], by: number): Item[] => [...items.slice(by), ...items.slice(0, by)]
