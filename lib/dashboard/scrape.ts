import type { Keypair } from '@stellar/stellar-sdk'
import type { Database } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { exposeMetrics, type Family } from '#lib/observability/metrics.ts'
import type { Sponsor } from '#lib/transfers/sponsor.ts'
import { type LedgerReader, ledgerFamilies } from './ledger-metrics.ts'
import { stateFamilies } from './state-metrics.ts'
import { storedFamilies } from './stored-metrics.ts'

/** The sources of the metrics. */
interface Scraped {
  database(): Promise<Database>
  network: LedgerReader
  sponsor: Pick<Sponsor, 'keypair' | 'limits' | 'readBalance'> | undefined
  settings: { faucet: { keypair: Pick<Keypair, 'publicKey'> } | undefined }
  now(): Date
}

/**
 * Everything that is measured, in Prometheus's text format. When the database or the ledger cannot be reached,
 * `payroll_up` says so and the other families are still answered: during an outage they are wanted most.
 */
export async function scrape({ database, network, sponsor, settings, now }: Scraped): Promise<string> {
  const [stored, ledger, balance] = await Promise.all([
    attempt(async () => {
      const db = await database()
      return [
        ...(await storedFamilies(db, now(), settings.faucet?.keypair.publicKey())),
        ...(await stateFamilies(db, now())),
      ]
    }),
    attempt(() => ledgerFamilies(network, now())),
    sponsor ? attempt(async () => balanceFamilies(sponsor, await sponsor.readBalance())) : [],
  ])
  const up = [
    { labels: { part: 'database' }, value: stored ? 1 : 0 },
    { labels: { part: 'ledger' }, value: ledger && balance ? 1 : 0 },
  ]
  const reached: Family = {
    name: 'payroll_up',
    help: 'Whether a part that these numbers come from can be reached.',
    type: 'gauge',
    samples: up,
  }
  return await exposeMetrics([reached, ...(stored ?? []), ...(ledger ?? []), ...(balance ?? [])])
}

async function attempt(read: () => Promise<Family[]>): Promise<Family[] | undefined> {
  try {
    return await read()
  } catch (error) {
    log('error', 'scrape', { failure: describeFailure(error) })
    return undefined
  }
}

function balanceFamilies({ keypair, limits }: NonNullable<Scraped['sponsor']>, available: bigint): Family[] {
  const labels = { sponsor: keypair.publicKey() }
  return [
    {
      name: 'payroll_sponsor_balance_stroops',
      help: 'What the ledger would let the sponsor spend, bids of open transfers included.',
      type: 'gauge',
      samples: [{ labels, value: Number(available) }],
    },
    {
      name: 'payroll_sponsor_day_limit_stroops',
      help: 'The daily budget of the sponsor.',
      type: 'gauge',
      samples: [{ labels: {}, value: Number(limits.dailyBudget) }],
    },
  ]
}
