import { Asset, Keypair, Operation, TransactionBuilder } from '@stellar/stellar-sdk'
import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sendAndWait } from '#lib/cli/participants.ts'
import { takeLease } from '#lib/db/leases.ts'
import { relayName } from '#lib/relay/presence.ts'
import { CHANNEL_FUNDS } from '#lib/relay/setup.ts'
import { startRelay } from '#lib/server/relay.ts'
import { formatUnits } from '#lib/text/money.ts'
import { buildDeposit } from '#lib/wallet/calls.ts'
import { QUICK } from './quick.ts'
import { type Client, openWorks, type Works } from './works.ts'

vi.setConfig({ testTimeout: 120_000 })

let works: Works
let client: Client
beforeAll(async () => {
  works = await openWorks({ channels: 2 })
  client = await works.client()
  const payee = await works.payee()
  await works.hire(client, [payee.signer.publicKey()])
}, 120_000)
afterAll(() => works?.close())

const addressOf = (channel: number) => works.channels[channel]?.publicKey() ?? ''

async function post(amount: number): Promise<string> {
  return String((await works.post(client, { amounts: [amount] })).body.jobId)
}

async function paidBy(job: string): Promise<(string | null)[]> {
  const items = await works.db.query.batchItems.findMany({ where: (item, { eq }) => eq(item.job, job) })
  return items.map(({ channel }) => channel)
}

test.each([
  ['that one of them has begun', sql`status = 'taken', attempt = 1, channel = `],
  ['that the other is unable to pay', undefined],
])('a relay whose share is one of two channels comes to the item %s', async (_, begun) => {
  // A relay that has other channels, or does nothing.
  await takeLease(works.db, relayName('other'), { holder: 'other', seconds: 600 })
  for (const [channel, other] of [
    [0, 1],
    [1, 0],
  ] as const) {
    const job = await post(5)
    const state = begun ? sql`${begun} ${addressOf(channel)}` : sql`unable = ARRAY[${addressOf(other)}]`
    await works.db.execute(sql`UPDATE batch_items SET ${state} WHERE job = ${job}`)
    const relay = await works.relay()
    try {
      expect(await works.ended(client, job, 15)).toMatchObject({ status: 'completed' })
      expect(await paidBy(job)).toEqual([addressOf(channel)])
    } finally {
      await relay.close()
    }
  }
})

test('a relay that gets nowhere lets go of its channel, and another one ends what it has begun', async () => {
  const helpless = { prove: () => Promise.reject(new Error('out of reach')) }
  const first = await startRelay(works.service, { prover: helpless, times: QUICK })
  const job = await post(8)
  const status = async () =>
    (await works.db.query.batchItems.findFirst({ where: (item, { eq }) => eq(item.job, job) }))?.status
  await expect.poll(status, { timeout: 10_000 }).toBe('taken')
  const second = await works.relay()
  try {
    expect(await works.ended(client, job)).toMatchObject({ status: 'completed' })
  } finally {
    await first.close()
    await second.close()
  }
})

test('a channel that has no XLM for its merge leaves the item to the others', async () => {
  const [poor] = works.channels
  if (!poor) throw new Error('no channel')
  const issuer = Keypair.fromSecret(works.devnet.issuerSecret)
  for (const channel of [0, 1]) {
    const deposit = { to: addressOf(channel), amount: 1_000_0000000n }
    await sendAndWait(works.network, (await buildDeposit(works.network, issuer, deposit)).signedXdr)
  }
  const source = await works.network.rpc.getAccount(poor.publicKey())
  const { balance } = await works.network.rpc.getAccountEntry(poor.publicKey())
  // All but the reserve of an account and this payment's fee.
  const amount = formatUnits(balance - 1_0000000n - 100n)
  const payment = { destination: addressOf(1), asset: Asset.native(), amount }
  const transaction = new TransactionBuilder(source, { fee: '100', networkPassphrase: works.network.passphrase })
    .addOperation(Operation.payment(payment))
    .setTimeout(60)
    .build()
  transaction.sign(poor)
  await sendAndWait(works.network, transaction.toXdr())

  const job = await post(Number(CHANNEL_FUNDS) + 5)
  await works.db.execute(
    sql`UPDATE batch_items SET status = 'taken', attempt = 1, channel = ${addressOf(0)} WHERE job = ${job}`,
  )
  const relay = await works.relay()
  try {
    expect(await works.ended(client, job)).toMatchObject({ status: 'completed' })
    expect(await paidBy(job)).toEqual([addressOf(1)])
  } finally {
    await relay.close()
  }
})
