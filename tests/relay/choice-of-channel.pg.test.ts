import { Asset, Keypair, Operation, TransactionBuilder } from '@stellar/stellar-sdk'
import { eq, sql } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { relayChannels, relayLines } from '#drizzle/schema/relay.ts'
import { sendAndWait } from '#lib/cli/client/participants.ts'
import type { LoadedProver } from '#lib/prover/node/loading.ts'
import { prover } from '#lib/prover/stand-in.ts'
import { CHANNEL_FUNDS } from '#lib/relay/setup.ts'
import { formatUnits } from '#lib/text/money.ts'
import { buildDeposit } from '#lib/wallet/calls.ts'
import { readLines } from '../support/lines.ts'
import { expectJobPaidOnce } from '../support/paid-once.ts'
import { type Client, openRelayService, type RelayService } from './relay-service.ts'
import { SHORT_TIMES } from './short-times.ts'

let fixture: RelayService
let client: Client
beforeAll(async () => {
  fixture = await openRelayService({ channels: 2 })
  client = await fixture.client()
  const payee = await fixture.payee()
  await fixture.hire(client, [payee.signer.publicKey()])
})
afterAll(() => fixture?.close())

const addressOf = (channel: number) => fixture.channels[channel]?.publicKey() ?? ''

const post = (amount: number) => postAs(client, amount)

async function postAs(by: Client, amount: number): Promise<string> {
  return fixture.begin(by, amount)
}

/** Leaves a line as a host does that has died: its lease lasts for two seconds more. */
async function hold(job: string, channel: string): Promise<void> {
  await fixture.db
    .update(relayLines)
    .set({ channel, leasedUntil: sql`clock_timestamp() + interval '2 s'` })
    .where(eq(relayLines.job, job))
}

const linesOf = (job: string) => readLines(fixture.db, eq(relayLines.job, job))

const paidBy = async (job: string) =>
  (await linesOf(job)).map(({ outcome, channel }) => (outcome === 'paid' ? channel : undefined))

test('pays a line that a dead host has leased, and none from a channel whose balance was too low for it', async () => {
  for (const [channel, other] of [
    [0, 1],
    [1, 0],
  ] as const) {
    const [held, short] = [await post(5), await postAs(await fixture.client(), 6)]
    await hold(held, addressOf(channel))
    await fixture.db
      .update(relayLines)
      .set({ unable: [addressOf(other)] })
      .where(eq(relayLines.job, short))
    await using _relay = await fixture.relay()
    await expectJobPaidOnce(fixture, client, held)
    await expect.poll(() => paidBy(short)).toEqual([addressOf(channel)])
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
  await expect.poll(async () => (await linesOf(job)).map(({ state }) => state)).toEqual(['waiting'])
  expect(tried).not.toContain('second')
  // Both hosts lease the line from now on, the first one in vain.
  await using _second = await fixture.relay({ prover: working })
  await expectJobPaidOnce(fixture, client, job)
  expect(tried.filter((relay) => relay === 'second')).not.toEqual([])
})

test('pays from another channel when one has no XLM for its merge', async () => {
  const [poor] = fixture.channels
  if (!poor) throw new Error('no channel')
  const issuer = Keypair.fromSecret(fixture.ledger.devnet.issuerSecret)
  for (const channel of [0, 1]) {
    const deposit = { to: addressOf(channel), amount: 1_000_0000000n }
    await sendAndWait(fixture.ledger.network, (await buildDeposit(fixture.ledger.network, issuer, deposit)).signedXdr)
  }
  const source = await fixture.ledger.network.rpc.getAccount(poor.publicKey())
  const { balance } = await fixture.ledger.network.rpc.getAccountEntry(poor.publicKey())
  // Everything except the account's reserve and this payment's fee.
  const amount = formatUnits(balance - 1_0000000n - 100n)
  const payment = { destination: addressOf(1), asset: Asset.native(), amount }
  const transaction = new TransactionBuilder(source, {
    fee: '100',
    networkPassphrase: fixture.ledger.network.passphrase,
  })
    .addOperation(Operation.payment(payment))
    .setTimeout(60)
    .build()
  transaction.sign(poor)
  await sendAndWait(fixture.ledger.network, transaction.toXdr())
  await fixture.adoptSequences()

  const job = await post(Number(CHANNEL_FUNDS) + 5)
  const pause = (channel: number, paused: boolean) =>
    fixture.db
      .update(relayChannels)
      .set({ paused })
      .where(eq(relayChannels.address, addressOf(channel)))
  await pause(1, true)
  await using _relay = await fixture.relay({ times: { ...SHORT_TIMES, longestLease: 4 } })
  const firstChannel = async () => (await linesOf(job)).map(({ channel }) => channel)
  await expect.poll(firstChannel).toEqual([addressOf(0)])
  await pause(1, false)
  await expectJobPaidOnce(fixture, client, job)
  expect(await paidBy(job)).toEqual([addressOf(1)])
})
