import { readFileSync } from 'node:fs'
import { Keypair } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { MIN_HISTORY_LEFT } from '#lib/archive/ranges.ts'
import { batchRow, insertRows, organisationRow } from '#lib/cli/seed/rows.ts'
import { PROGRESS } from '#lib/dashboard/lateness.ts'
import { type LedgerReader, ledgerFamilies } from '#lib/dashboard/ledger-metrics.ts'
import { scrape } from '#lib/dashboard/scrape.ts'
import { stateFamilies } from '#lib/dashboard/state-metrics.ts'
import type { Database } from '#lib/db/connection.ts'
import { BUDGET_PERCENT, SPONSOR_DAYS } from '#lib/server/service-attention.ts'
import type { Network } from '#lib/stellar/network.ts'
import { cloneDatabase } from '../support/database.ts'

const RULES = z.object({
  groups: z.array(
    z.strictObject({
      name: z.string(),
      rules: z.array(
        z.strictObject({
          alert: z.string().regex(/^Payroll[A-Za-z]+$/),
          expr: z.string().min(1),
          for: z.string().regex(/^\d+[mh]$/),
          labels: z.strictObject({ severity: z.enum(['page', 'ticket']) }),
          annotations: z.strictObject({ summary: z.string().min(1) }),
        }),
      ),
    }),
  ),
})

const rules = RULES.parse(parse(readFileSync('docs/alerts.yml', 'utf8'))).groups.flatMap((group) => group.rules)
const NOW = new Date('2026-11-20T12:30:00Z')

let clone: Awaited<ReturnType<typeof cloneDatabase>>
let db: Database
beforeAll(async () => {
  clone = await cloneDatabase()
  db = await clone.store.database()
})
afterAll(() => clone.drop())

test('documents each alert once in the runbook', () => {
  const runbook = [...readFileSync('docs/operate.md', 'utf8').matchAll(/^\| `(Payroll\w+)` \| \S.* \| \S.* \|$/gm)]
  expect(runbook.map(([, name]) => name).sort()).toEqual(rules.map(({ alert }) => alert).sort())
})

const call = async (_: string, __: object, schema: z.ZodType) =>
  schema.parse({ latestLedger: 12, oldestLedger: 3, latestLedgerCloseTime: String(NOW.getTime() / 1000 - 7) })
const network = { call } as LedgerReader

test.each([
  ['PayrollTransferOpen', PROGRESS.transfer.lateAfterSeconds],
  ['PayrollJobStalled', PROGRESS.job.lateAfterSeconds],
  ['PayrollBatchStalled', PROGRESS.batch.lateAfterSeconds],
  ['PayrollArchiveBehind', MIN_HISTORY_LEFT],
  ['PayrollSponsorRunsDry', SPONSOR_DAYS],
  ['PayrollBudgetNearlyUsed', BUDGET_PERCENT / 100],
])('alerts at the threshold of the dashboard: %s', (name, threshold) => {
  const { expr = '' } = rules.find(({ alert }) => alert === name) ?? {}
  expect([...expr.matchAll(/[<>,] ([\d.]+)/g)].map(([, number]) => Number(number))).toContain(threshold)
})

test('uses only exported metrics and label values in alerts', async () => {
  const limits = { transfersPerAccount: 1, stroopsPerAccount: 1n, dailyBudget: 1n, callsBudget: 1n }
  const sponsor = { keypair: Keypair.random(), limits, readBalance: async () => 1n }
  const text = await scrape({
    database: async () => db,
    network,
    sponsor,
    archive: { network: network as Network, token: 'C', database: async () => db },
    now: () => NOW,
  })
  const references = rules.flatMap(({ expr }) => [...expr.matchAll(/\b(payroll_[a-z_]+)(?:\{(\w+)!?="([^"]*)"\})?/g)])
  expect(new Set(references.map(([, name]) => name)).size).toBeGreaterThan(8)
  for (const [, name, label, value] of references) {
    expect(text).toMatch(new RegExp(`^# TYPE ${name} `, 'm'))
    if (label) expect(text).toMatch(new RegExp(`^${name}\\{(.*,)?${label}="${value}"`, 'm'))
  }
})

test('reports 0 for a state without records, and 0 as the age of its oldest record', async () => {
  const families = await stateFamilies(db, NOW)
  const values = families.flatMap(({ name, samples }) =>
    samples.map(({ labels, value }) => [`${name} ${Object.values(labels)}`, value] as const),
  )
  expect(values.every(([, value]) => value === 0)).toBe(true)
  expect(values.map(([name]) => name)).toEqual(
    expect.arrayContaining(['payroll_batches failed', 'payroll_channels problem', 'payroll_oldest_open_seconds batch']),
  )
})

test('counts records by state, and reports the age of the oldest', async () => {
  const organisation = organisationRow()
  const batches = [1, 2, 3].map((minutes) =>
    batchRow({
      organisation: organisation.id,
      status: 'started',
      startedAt: new Date(NOW.getTime() - minutes * 60_000),
    }),
  )
  await insertRows(db, { organisations: [organisation], batches })
  const families = await stateFamilies(db, NOW)
  const figureOf = (name: string, label: string) =>
    families.find((family) => family.name === name)?.samples.find(({ labels }) => Object.values(labels).includes(label))
      ?.value
  expect(figureOf('payroll_batches', 'started')).toBe(3)
  expect(figureOf('payroll_oldest_open_seconds', 'batch')).toBe(180)
})

test('reports the age of the last ledger as the lag of the RPC', async () => {
  const families = await ledgerFamilies(network, NOW)
  expect(families.map(({ name, samples }) => [name, samples[0]?.value])).toEqual([
    ['payroll_rpc_latest_ledger', 12],
    ['payroll_rpc_lag_seconds', 7],
  ])
})
