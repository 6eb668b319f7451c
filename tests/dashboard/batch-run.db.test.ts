import { Networks, StrKey } from '@stellar/stellar-sdk'
import { eq } from 'drizzle-orm'
import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { RunSummary } from '#app/(operator)/batches/[id]/run-summary.tsx'
import { relayChannels, relayLines } from '#drizzle/schema/relay.ts'
import {
  batchRow,
  contractorRow,
  insertRows,
  itemRow,
  jobRow,
  organisationRow,
  payoutRow,
  transferRow,
} from '#lib/cli/seed/rows.ts'
import type { BatchApproval } from '#lib/dashboard/approvals.ts'
import { findBatchRun } from '#lib/dashboard/paying-channels.ts'
import type { Database } from '#lib/db/connection.ts'
import { formatManifest, hashSeal } from '#lib/wallet/manifest.ts'
import { cloneDatabase } from '../support/database.ts'

const NOW = new Date('2026-11-20T12:30:00Z')
const account = (digit: number) => StrKey.encodeEd25519PublicKey(new Uint8Array(32).fill(digit))
const TOKEN = StrKey.encodeContract(new Uint8Array(32))
const CHANNELS = [account(1), account(2), account(3)] as const
const SEAL = 'a sealed amount'

let clone: Awaited<ReturnType<typeof cloneDatabase>>
let db: Database
beforeAll(async () => {
  clone = await cloneDatabase()
  db = await clone.store.database()
})
afterAll(() => clone.drop())

test('shows the channels of a run, how long each may pay and what it waits for, and no amount', async () => {
  const organisation = organisationRow()
  const batch = batchRow({ organisation: organisation.id, status: 'ready' })
  const contractors = [1, 2, 3, 4].map(() => contractorRow({ organisation: organisation.id }))
  const payouts = contractors.map(({ id: contractor }) =>
    payoutRow({ organisation: organisation.id, batch: batch.id, contractor, status: 'ready', encryptedAmount: SEAL }),
  )
  await insertRows(db, { organisations: [organisation], batches: [batch], contractors, payouts })
  expect(await findBatchRun(db, batch.id, NOW)).toBeUndefined()
  const spenders = [CHANNELS[0], CHANNELS[0], CHANNELS[1], CHANNELS[2]]
  const manifest = formatManifest({
    passphrase: Networks.TESTNET,
    token: TOKEN,
    batch: batch.id,
    account: account(9),
    delegations: CHANNELS.map((channel, index) => ({ channel, liveUntilLedger: 1_000 + index })),
    payouts: payouts.map(({ id, contractor }, index) => {
      return { payout: id, contractor, address: account(8), channel: spenders[index] ?? '', sealHash: hashSeal(SEAL) }
    }),
  })
  const run = { batch: batch.id, manifest, signature: 'signature', quotaDay: '2026-11-20' }
  const job = jobRow({ userKind: 'ledger', userSub: account(9), createdAt: NOW, ...run })
  const items = payouts.map(({ id: payout }, position) => {
    const line = { job: job.id, position, payout, spender: spenders[position], queuedAt: NOW }
    return itemRow({ ...line, outcome: position === 0 ? 'paid' : null })
  })
  const open = transferRow({ account: CHANNELS[0], lineJob: job.id, linePosition: 1, createdAt: NOW })
  const another = jobRow({ createdAt: NOW })
  const elsewhere = itemRow({ job: another.id, queuedAt: NOW })
  await insertRows(db, { jobs: [job, another], items: [...items, elsewhere], transfers: [open] })
  await db.insert(relayChannels).values([
    { token: TOKEN, address: CHANNELS[0], seenAt: NOW },
    { token: TOKEN, address: CHANNELS[1], seenAt: NOW, paused: true },
    { token: TOKEN, address: CHANNELS[2], seenAt: new Date(NOW.getTime() - 61_000) },
  ])
  const found = await findBatchRun(db, batch.id, NOW)
  expect(found).toMatchObject({
    status: 'running',
    account: account(9),
    channels: [
      { address: CHANNELS[0], liveUntilLedger: 1_000, paid: 1, left: 1, waitsFor: 'the ledger' },
      { address: CHANNELS[1], liveUntilLedger: 1_001, left: 1, waitsFor: 'an operator, who has paused the channel' },
      { address: CHANNELS[2], liveUntilLedger: 1_002, left: 1, waitsFor: 'a relay with the key of this channel' },
    ],
  })
  await db.update(relayChannels).set({ paused: false, problem: 'registration' })
  const [, unregistered] = (await findBatchRun(db, batch.id, NOW))?.channels ?? []
  expect(unregistered?.waitsFor).toMatch(/^the channel\. It is not registered with the token\. /)
  await db.update(relayChannels).set({ problem: null })
  const waitsFor = async (state: Partial<typeof relayLines.$inferInsert>, of = eq(relayLines.spender, CHANNELS[1])) => {
    await db.update(relayLines).set(state).where(of)
    return (await findBatchRun(db, batch.id, NOW))?.channels[1]?.waitsFor
  }
  expect(await waitsFor({ due: new Date(NOW.getTime() + 1) })).toMatch(/^a repeated check of the ledger/)
  expect(await waitsFor({ due: NOW })).toBe('its host')
  const leased = { channel: CHANNELS[1], leasedUntil: new Date('2100-01-01') }
  expect(await waitsFor(leased, eq(relayLines.job, another.id))).toMatch(/^its turn: the channel pays another employer/)
  await db.update(relayLines).set({ channel: null, leasedUntil: null }).where(eq(relayLines.job, another.id))
  expect(await waitsFor(leased)).toBe('a proof')
  const show = (run: typeof found, startedAt: Date | null, approval?: BatchApproval) => {
    const props = { run, approval, batch: { status: 'ready', startedAt } as const, network: 'local', now: NOW }
    return renderToStaticMarkup(createElement(RunSummary, props))
  }
  const shown = show(found, NOW)
  expect(shown).toContain('delegated until ledger 1000')
  expect(shown).not.toContain(SEAL)
  expect(show(undefined, NOW)).toContain('The client pays it')
  expect(show(undefined, null)).toContain('It waits for the employer')
  const approved = show(undefined, null, { account: CHANNELS[0], signers: [CHANNELS[1]], updatedAt: NOW })
  expect(approved).toContain('needs more signatures')
  expect(approved).toContain(CHANNELS[1])
  expect(approved).not.toContain('It waits for the employer')
})
