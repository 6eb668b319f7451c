import { Asset, Keypair, Operation, TransactionBuilder } from '@stellar/stellar-sdk'
import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sendAndWait } from '#lib/cli/client/participants.ts'
import type { LoadedProver } from '#lib/prover/node/loading.ts'
import { prover } from '#lib/prover/stand-in.ts'
import { CHANNEL_FUNDS } from '#lib/relay/setup.ts'
import { formatUnits } from '#lib/text/money.ts'
import { buildDeposit } from '#lib/wallet/calls.ts'
import { expectJobPaidOnce } from '../support/paid-once.ts'
import { type Client, openRelayService, type RelayService } from './relay-service.ts'

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

/** Leaves an item as a dead worker would: holding the channel, without a transfer. */
async function hold(job: string, channel: string): Promise<void> {
  await fixture.db.execute(
    sql`UPDATE batch_items SET status = 'taken', attempt = 1, channel = ${channel} WHERE job = ${job}`,
  )
  await fixture.db.execute(
    sql`UPDATE relay_channels SET item_job = ${job}, item_position = 0 WHERE address = ${channel}`,
  )
}

async function paidBy(job: string): Promise<(string | null)[]> {
  const items = await fixture.db.query.batchItems.findMany({ where: (item, { eq }) => eq(item.job, job) })
  return items.map(({ channel }) => channel)
}

test('pays an item from the channel that it holds, and never from one whose balance was too low for it', async () => {
  for (const [channel, other] of [
    [0, 1],
    [1, 0],
  ] as const) {
    const [held, short] = [await post(5), await postAs(await fixture.client(), 6)]
    await hold(held, addressOf(channel))
    await fixture.db.execute(sql`UPDATE batch_items SET unable = ARRAY[${addressOf(other)}] WHERE job = ${short}`)
    await using _relay = await fixture.relay()
    await expectJobPaidOnce(fixture, client, held)
    await expect.poll(() => paidBy(short)).toEqual([addressOf(channel)])
    expect(await paidBy(held)).toEqual([addressOf(channel)])
  }
})

test('releases the channel of an item that it cannot prove, so that another relay pays the item', async () => {
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
  const first = await fixture.relay({ prover: helpless })
  const job = await post(8)
  await expect.poll(() => tried).toContain('first')
  const itemAndHolders = async () => {
    const item = await fixture.db.query.batchItems.findFirst({ where: (row, { eq }) => eq(row.job, job) })
    const holders = await fixture.db.query.relayChannels.findMany({ where: (row, { eq }) => eq(row.itemJob, job) })
    return [item?.status, item?.channel, holders.length]
  }
  await expect.poll(itemAndHolders).toEqual(['queued', null, 0])
  expect(tried).not.toContain('second')
  // Both relays would keep taking the item, the first in vain.
  await first.close()
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
  await hold(job, addressOf(0))
  await using _relay = await fixture.relay()
  await expectJobPaidOnce(fixture, client, job)
  expect(await paidBy(job)).toEqual([addressOf(1)])
})
