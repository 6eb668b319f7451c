import { Asset, Keypair, Operation } from '@stellar/stellar-sdk'
import { eq, sql } from 'drizzle-orm'
import { expect, test } from 'vitest'
import { relayChannels, relayLines } from '#drizzle/schema/relay.ts'
import { sendAndWait } from '#lib/cli/client/participants.ts'
import type { LoadedProver } from '#lib/prover/node/loading.ts'
import { prover } from '#lib/prover/stand-in.ts'
import { CHANNEL_FUNDS } from '#lib/relay/setup.ts'
import { formatUnits } from '#lib/text/money.ts'
import { buildDeposit } from '#lib/wallet/calls.ts'
import { signElsewhere } from '../support/elsewhere.ts'
import { expectJobPaidOnce } from '../support/paid-once.ts'
import { serveJobs } from './relay-service.ts'
import { SHORT_TIMES } from './short-times.ts'

const fixture = await serveJobs({ channels: 2 })
const { client } = await fixture.engaged()

const post = (amount: number) => fixture.begin(client, amount)

/** Leaves a line as a host does that has died: its lease lasts for two seconds more. */
async function hold(job: string, channel: string): Promise<void> {
  await fixture.db
    .update(relayLines)
    .set({ channel, leasedUntil: sql`clock_timestamp() + interval '2 s'` })
    .where(eq(relayLines.job, job))
}

const paidBy = async (job: string) =>
  (await fixture.linesOf(job)).map(({ outcome, channel }) => (outcome === 'paid' ? channel : undefined))

test('pays a line that a dead host has leased, and none from a channel whose balance was too low for it', async () => {
  for (const [channel, other] of [
    [0, 1],
    [1, 0],
  ] as const) {
    const [held, short] = [await post(5), await fixture.begin(await fixture.client(), 6)]
    await hold(held, fixture.addressOf(channel))
    await fixture.db
      .update(relayLines)
      .set({ unable: [fixture.addressOf(other)] })
      .where(eq(relayLines.job, short))
    await using _relay = await fixture.relay()
    await expectJobPaidOnce(fixture, client, held)
    await expect.poll(() => paidBy(short)).toEqual([fixture.addressOf(channel)])
  }
})

test('leaves a line that it cannot prove, so that another host with its seeds pays it', async () => {
  const tried: string[] = []
  const helpless = {
    prove: () => {
      tried.push('first')
      return Promise.reject(new Error('out of reach'))
    },
  }
  const working: LoadedProver = {
    ...prover,
    prove: (statement) => {
      tried.push('second')
      return prover.prove(statement)
    },
  }
  await using _first = await fixture.relay({ prover: helpless })
  const job = await post(8)
  await expect.poll(() => tried).toContain('first')
  await expect.poll(async () => (await fixture.linesOf(job)).map(({ state }) => state)).toEqual(['waiting'])
  expect(tried).not.toContain('second')
  // Both hosts lease the line from now on, the first one in vain.
  await using _second = await fixture.relay({ prover: working })
  await expectJobPaidOnce(fixture, client, job)
  expect(tried.filter((relay) => relay === 'second')).not.toEqual([])
})

test('pays from another channel when one has no XLM for its merge', async () => {
  const poor = fixture.channel(fixture.addressOf(0))
  const issuer = Keypair.fromSecret(fixture.ledger.devnet.issuerSecret)
  for (const channel of [0, 1]) {
    const deposit = { to: fixture.addressOf(channel), amount: 1_000_0000000n }
    await sendAndWait(fixture.ledger.network, (await buildDeposit(fixture.ledger.network, issuer, deposit)).signedXdr)
  }
  const { balance } = await fixture.ledger.network.rpc.getAccountEntry(poor.publicKey())
  // Everything except the account's reserve and this payment's fee.
  const amount = formatUnits(balance - 1_0000000n - 100n)
  const operation = Operation.payment({ destination: fixture.addressOf(1), asset: Asset.native(), amount })
  await signElsewhere(fixture.ledger.network, poor, { operation })
  await fixture.adoptSequences()

  const job = await post(Number(CHANNEL_FUNDS) + 5)
  const pause = (channel: number, paused: boolean) =>
    fixture.db
      .update(relayChannels)
      .set({ paused })
      .where(eq(relayChannels.address, fixture.addressOf(channel)))
  await pause(1, true)
  await using _relay = await fixture.relay({ times: { ...SHORT_TIMES, longestLease: 4 } })
  const firstChannel = async () => (await fixture.linesOf(job)).map(({ channel }) => channel)
  await expect.poll(firstChannel).toEqual([fixture.addressOf(0)])
  await pause(1, false)
  await expectJobPaidOnce(fixture, client, job)
  expect(await paidBy(job)).toEqual([fixture.addressOf(1)])
})
