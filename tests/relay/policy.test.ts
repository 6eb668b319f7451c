import { Keypair } from '@stellar/stellar-sdk'
import { eq, sql } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sponsoredTransfers } from '#drizzle/schema/transfers.ts'
import { Refusal } from '#lib/http/refusal.ts'
import { readiness } from '#lib/server/readiness.ts'
import type { Sponsor } from '#lib/sponsor/sponsor.ts'
import { sponsorChannel, sponsorTransfer } from '#lib/sponsor/transfer.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { buildTransfer } from '#lib/wallet/calls.ts'
import { openHolder } from '#lib/wallet/keys.ts'
import { openWorks, type Works } from './works.ts'

let works: Works
let sponsor: Sponsor
beforeAll(async () => {
  works = await openWorks({ channels: 2 })
  if (!works.service.sponsor) throw new Error('no sponsor')
  sponsor = works.service.sponsor
}, 120_000)
afterAll(() => works?.close())

const addressOf = (channel: number) => works.channels[channel]?.publicKey() ?? ''
const quotaAccount = Keypair.random().publicKey()
const confirm = async () => undefined

/** A transfer that a channel has signed. */
async function transferOf(channel: number) {
  const signer = works.channels[channel]
  if (!signer) throw new Error('no such channel')
  const holder = openHolder(signer, works.network.token)
  const { spendable } = await syncBalance(works.network, { address: signer.publicKey(), vk: holder.keys.vk })
  return await buildTransfer(works.network, holder, { to: addressOf(1 - channel), amount: 5n, opening: spendable })
}

async function rowOf(hash: string) {
  const [row] = await works.db.select().from(sponsoredTransfers).where(eq(sponsoredTransfers.innerHash, hash))
  return row
}

test('a channel’s transfer is nobody’s but the relay’s: on POST /transfer it is refused', async () => {
  const { signedXdr, hash } = await transferOf(0)
  const asked = sponsorTransfer(works.db, sponsor, addressOf(0), { signedXDR: signedXdr })
  await expect(asked).rejects.toMatchObject({ code: 'refused', reason: 'own-address' })
  expect(await rowOf(hash)).toBeUndefined()
})

test('the relay has it paid as this channel, and not as another', async () => {
  const { signedXdr, hash } = await transferOf(0)
  const other = sponsorChannel(works.db, sponsor, { channel: addressOf(1), quotaAccount, confirm }, signedXdr)
  await expect(other).rejects.toMatchObject({ code: 'forbidden' })
  const ending = await sponsorChannel(works.db, sponsor, { channel: addressOf(0), quotaAccount, confirm }, signedXdr)
  expect(ending).toMatchObject({ status: 'success', innerHash: hash, quotaAccount, account: addressOf(0) })
  const quotas = await works.db.query.quotas.findMany()
  expect(quotas.find(({ account }) => account === quotaAccount)).toMatchObject({ count: 1, held: 0n })
  expect(quotas.find(({ account }) => account === addressOf(0))).toBeUndefined()
})

test('what is not confirmed is neither recorded nor held against anybody', async () => {
  const before = await works.db.query.quotas.findMany()
  const { signedXdr, hash } = await transferOf(1)
  const refuse = async () => {
    throw new Refusal('conflict', 'the item has moved on')
  }
  const asked = sponsorChannel(works.db, sponsor, { channel: addressOf(1), quotaAccount, confirm: refuse }, signedXdr)
  await expect(asked).rejects.toMatchObject({ code: 'conflict' })
  expect(await rowOf(hash)).toBeUndefined()
  expect(await works.db.query.quotas.findMany()).toEqual(before)
})

test('while the float is short a job waits, and then it is paid', async () => {
  await works.db.execute(sql`UPDATE sponsor_floats SET held = held + 1000000000000000`)
  const relay = await works.relay()
  try {
    const client = await works.client()
    const { jobId } = (await works.post(client, { amounts: [5] })).body as { jobId: string }
    const refusals = async () => {
      const { rows } = (await works.db.execute(
        sql`SELECT 1 FROM audit_log WHERE action = 'transfer.refused' AND detail->>'reason' = 'float'`,
      )) as unknown as { rows: unknown[] }
      return rows.length
    }
    await expect.poll(refusals, { timeout: 30_000 }).toBeGreaterThan(12)
    expect((await works.read(client, jobId)).body).toMatchObject({ status: 'running', results: [] })
    await works.db.execute(sql`UPDATE sponsor_floats SET held = held - 1000000000000000`)
    expect(await works.ended(client, jobId)).toMatchObject({ status: 'completed' })
  } finally {
    await relay.close()
  }
})

test('without a relay that runs, /ready says so, and is no longer ok', async () => {
  const { ok, relay } = await readiness({ ...works.service })
  expect([ok, relay]).toEqual([false, { ok: false, relays: 0, channels: 2, problem: 'no relay is running' }])
  await works.db.execute(sql`UPDATE relay_channels SET problem = 'registration'`)
  const problem = `no relay is running; no channel can pay; ${[addressOf(0), addressOf(1)]
    .toSorted()
    .map((address) => `${address}: registration`)
    .join('; ')}`
  expect((await readiness({ ...works.service })).relay).toEqual({ ok: false, relays: 0, channels: 2, problem })
})
