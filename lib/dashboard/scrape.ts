import type { ArchiveContext } from '#lib/archive/ingest.ts'
import { readPresent } from '#lib/db/clock.ts'
import type { Database } from '#lib/db/connection.ts'
import { readOnly } from '#lib/db/read-only.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { exposeMetrics, type Family, gauge } from '#lib/observability/metrics.ts'
import type { Sponsor } from '#lib/transfers/sponsor.ts'
import { archiveFamilies, type LedgerReader, ledgerFamilies } from './ledger-metrics.ts'
import { stateFamilies } from './state-metrics.ts'
import { storedFamilies } from './stored-metrics.ts'

interface MetricSources {
  database(): Promise<Database>
  network: LedgerReader
  sponsor: Pick<Sponsor, 'keypair' | 'limits' | 'readBalance'> | undefined
  archive: ArchiveContext | undefined
  now(): Date
}

/**
 * Returns all metrics in Prometheus's text format. While the database or the ledger cannot be reached, `payroll_up` is 0
 * for it, and the other families are still returned: they matter most during an outage.
 */
export async function scrape({ database, network, sponsor, archive, now }: MetricSources): Promise<string> {
  const [stored, ledger, balance, archived] = await Promise.all([
    attempt(async () => {
      const db = readOnly(await database())
      return [...(await storedFamilies(db, now())), ...(await stateFamilies(db, now()))]
    }),
    attempt(async () => ledgerFamilies(network, await readPresent({ database, now }))),
    sponsor ? attempt(async () => balanceFamilies(sponsor, await sponsor.readBalance())) : [],
    archive ? attempt(() => archiveFamilies(archive)) : [],
  ])
  const reached = gauge('payroll_up', 'Whether a source of these metrics can be reached.', {
    part: [
      ['database', stored ? 1 : 0],
      ['ledger', ledger && balance ? 1 : 0],
    ],
  })
  return await exposeMetrics([reached, ...(stored ?? []), ...(ledger ?? []), ...(balance ?? []), ...(archived ?? [])])
}

async function attempt(read: () => Promise<Family[]>): Promise<Family[] | undefined> {
  try {
    return await read()
  } catch (error) {
    log('error', 'scrape', { failure: describeFailure(error) })
    return undefined
  }
}

function balanceFamilies({ keypair, limits }: NonNullable<MetricSources['sponsor']>, available: bigint): Family[] {
  return [
    gauge(
      'payroll_sponsor_balance_stroops',
      'The available balance of the sponsor, including the bids of open transfers.',
      { sponsor: [[keypair.publicKey(), Number(available)]] },
    ),
    gauge('payroll_sponsor_day_limit_stroops', 'The daily budget of the sponsor.', Number(limits.dailyBudget)),
  ]
}
