import { requireSecret } from '#lib/auth/shared-secret.ts'
import type { Database } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { exposeMetrics, type Family } from '#lib/observability/metrics.ts'
import type { Sponsor } from '#lib/sponsor/sponsor.ts'
import { type LedgerReader, ledgerFamilies } from './ledger-metrics.ts'
import { stateFamilies } from './state-metrics.ts'
import { storedFamilies } from './stored-metrics.ts'

/**
 * Lets whoever reads the metrics in, with `Authorization: Bearer <METRICS_TOKEN>`.
 * @throws Refusal `unauthenticated`; `not-wired` when there is no such token
 */
export function requireScraper(token: string | undefined, request: Request): void {
  requireSecret(token, request, {
    code: 'metrics-not-configured',
    unset: 'metrics are not configured',
    wrong: 'invalid metrics token',
  })
}

/** What a scrape looks at. */
export interface Scraped {
  database(): Promise<Database>
  network: LedgerReader
  sponsor: Pick<Sponsor, 'keypair' | 'limits' | 'readBalance'> | undefined
  now(): Date
}

/**
 * Everything that is measured, in Prometheus's text format. What cannot be reached is left out, and says so: an outage
 * is when the rest is wanted most.
 */
export async function scrape({ database, network, sponsor, now }: Scraped): Promise<string> {
  const [stored, ledger, balance] = await Promise.all([
    attempt(async () => {
      const db = await database()
      return [...(await storedFamilies(db, now())), ...(await stateFamilies(db, now()))]
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

async function attempt(look: () => Promise<Family[]>): Promise<Family[] | undefined> {
  try {
    return await look()
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
