import { openArchive, readCoverage } from '#lib/archive/history.ts'
import type { ArchiveContext } from '#lib/archive/ingest.ts'
import { readWindow } from '#lib/archive/source.ts'
import { readOnly } from '#lib/db/read-only.ts'
import { type Family, gauge } from '#lib/observability/metrics.ts'
import { readLatestLedger } from '#lib/stellar/latest-ledger.ts'
import type { Network } from '#lib/stellar/network.ts'

export type LedgerReader = Pick<Network, 'call'>

/**
 * Returns the RPC's latest ledger and its age.
 * @throws LedgerError `unavailable`
 */
export async function ledgerFamilies(network: LedgerReader, now: Date): Promise<Family[]> {
  const { sequence: latestLedger, closedAt } = await readLatestLedger(network)
  const lag = Math.max(0, Math.round(now.getTime() / 1000) - closedAt)
  return [
    gauge('payroll_rpc_latest_ledger', 'The latest ledger of the RPC.', latestLedger),
    gauge('payroll_rpc_lag_seconds', 'The time since the latest ledger of the RPC closed.', lag),
  ]
}

/**
 * Returns how far the archive is behind the network, and how much of the RPC's history remains before events are lost.
 * @throws LedgerError `unavailable`
 */
export async function archiveFamilies(archive: ArchiveContext): Promise<Family[]> {
  const { oldestLedger, latestLedger } = await readWindow(archive.network)
  const db = readOnly(await archive.database())
  const stored = await openArchive(db, archive.token)
  const coverage = stored && (await readCoverage(db, stored))
  const through = coverage?.ingestedThrough ?? oldestLedger - 1
  const left = (through + 1 - oldestLedger) / (latestLedger + 1 - oldestLedger)
  return [
    gauge(
      'payroll_archive_behind_ledgers',
      'Closed ledgers whose events the archive does not have yet.',
      Math.max(0, latestLedger - through),
    ),
    gauge(
      'payroll_archive_history_left_ratio',
      'The share of the RPC’s history below the archive’s end: 1 at the head, 0 when the next ledgers are lost.',
      Math.min(1, Math.max(0, left)),
    ),
    gauge('payroll_archive_gaps', 'Missing ranges between the stored ledgers.', coverage?.gaps ?? 0),
  ]
}
