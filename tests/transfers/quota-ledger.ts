import { sql } from 'drizzle-orm'
import { quotas, sponsorFloats } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { CALLS, EVERYBODY, quotaDay } from '#lib/transfers/quota.ts'

export type Balance = [held: bigint, used: bigint, count: number]

/** The quotas of each account and day, and the sponsors' floats. */
export async function readQuotas(db: Database): Promise<Record<string, Balance | bigint>> {
  const days = await db.select().from(quotas)
  const floats = await db.select().from(sponsorFloats)
  return Object.fromEntries([
    ...days.map(({ account, day, held, used, count }) => [`${account} ${day}`, [held, used, count]] as const),
    ...floats.map(({ sponsor, held }) => [`float of ${sponsor}`, held] as const),
  ])
}

/**
 * The differences between the quotas and the sums of the transfers, on one snapshot: held and float are the open bids,
 * used is the charged amount, or the whole bid for an unknown outcome, and count is everything recorded, except for a
 * relay's lines that expired without ever being submitted. A run counts with all its lines, and once it has ended with those
 * that were submitted, however many transfers a line took. The counts of settled transfers agree with the rows, too.
 */
export async function findDiscrepancies(db: Database): Promise<unknown[]> {
  const result = await db.execute(sql`
    WITH of_accounts AS (
      SELECT coalesce(quota_account, account) AS account, kind, quota_day AS day, bid, fee_charged, status,
          kind <> 'delegated' AND (quota_account IS NULL OR status <> 'expired' OR first_sent_at IS NOT NULL) AS counts
        FROM transfers LEFT JOIN (SELECT transfer, max(first_sent_at) AS first_sent_at FROM envelopes GROUP BY transfer) sent
          ON sent.transfer = transfers.id WHERE sponsor IS NOT NULL
      UNION ALL SELECT user_sub, 'delegated', quota_day, 0, 0, 'expired', true
        FROM relay_jobs JOIN relay_lines ON relay_lines.job = relay_jobs.id
        WHERE batch IS NOT NULL AND (relay_jobs.status = 'running' OR outcome = 'paid' OR EXISTS (
          SELECT FROM transfers JOIN envelopes ON envelopes.transfer = transfers.id AND first_sent_at IS NOT NULL
          WHERE line_job = relay_lines.job AND line_position = relay_lines.position))
    ), days AS (
      SELECT * FROM of_accounts UNION ALL SELECT ${EVERYBODY}, kind, day, bid, fee_charged, status, counts FROM of_accounts
      UNION ALL SELECT ${CALLS}, kind, day, bid, fee_charged, status, counts FROM of_accounts
        WHERE kind IN ('register', 'merge')
    ), sums AS (
      SELECT account, day, sum(bid) FILTER (WHERE status = 'open') AS held, count(*) FILTER (WHERE counts) AS count,
        sum(CASE WHEN status = 'unknown' THEN bid ELSE fee_charged END) AS used
      FROM days GROUP BY account, day
    ), open_bids AS (
      SELECT sponsor, sum(bid) AS held FROM transfers WHERE status = 'open' AND sponsor IS NOT NULL GROUP BY sponsor
    ), settled AS (
      SELECT to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24') AS hour, status, coalesce(sponsor, '') AS sponsor,
        coalesce(organisation, (SELECT organisation FROM relay_jobs JOIN identities ON (kind, sub) = (user_kind, user_sub)
          WHERE relay_jobs.id = line_job)) AS payer,
        greatest(0, extract(epoch FROM settled_at - created_at) * 1000)::bigint AS milliseconds, coalesce(fee_charged, 0) AS fees
      FROM transfers WHERE status <> 'open' AND kind <> 'deposit' AND (sponsor IS NOT NULL OR kind NOT IN ('register', 'merge'))
    ), settlements AS (
      SELECT coalesce(hour, 'ever') AS hour, status, sponsor, (count(*), sum(milliseconds), sum(fees))::text AS counted
      FROM settled GROUP BY GROUPING SETS ((hour, status, sponsor), (status, sponsor))
    ), counts AS (
      SELECT hour, status, sponsor, (sum(count), sum(milliseconds), sum(fees))::text AS counted
      FROM settlement_counts GROUP BY hour, status, sponsor
    ), costs AS (
      SELECT payer AS organisation, hour, (count(*), count(*) FILTER (WHERE status <> 'succeeded'), sum(fees))::text AS counted
      FROM settled JOIN organisations ON organisations.id = payer GROUP BY payer, hour
    ), hours AS (
      SELECT organisation, hour, (transfers::bigint, failed::bigint, fees::numeric)::text AS counted
      FROM organisation_hours JOIN organisations ON organisations.id = organisation
    ), windows AS (
      SELECT organisation, (sum(transfers) FILTER (WHERE is_recent), sum(failed) FILTER (WHERE is_recent),
        sum(fees) FILTER (WHERE is_recent), sum(transfers), sum(failed), sum(fees))::text AS counted
      FROM organisation_hours GROUP BY organisation
    )
    SELECT account, day FROM sums FULL JOIN quotas USING (account, day)
    WHERE coalesce(sums.held, 0) <> coalesce(quotas.held, 0) OR coalesce(sums.used, 0) <> coalesce(quotas.used, 0)
      OR coalesce(sums.count, 0) <> coalesce(quotas.count, 0)
    UNION ALL SELECT sponsor, 'float' FROM open_bids FULL JOIN sponsor_floats USING (sponsor)
    WHERE coalesce(open_bids.held, 0) <> coalesce(sponsor_floats.held, 0)
    UNION ALL SELECT hour, status || ' ' || sponsor FROM settlements FULL JOIN counts USING (hour, status, sponsor)
    WHERE settlements.counted IS DISTINCT FROM counts.counted
    UNION ALL SELECT organisation::text, hour FROM costs FULL JOIN hours USING (organisation, hour)
    WHERE costs.counted IS DISTINCT FROM hours.counted
    UNION ALL SELECT organisation::text, 'windows' FROM organisation_costs LEFT JOIN windows USING (organisation)
    WHERE coalesce(windows.counted, '(0,0,0,0,0,0)') IS DISTINCT FROM
      (day_transfers, day_failed, day_fees, month_transfers, month_failed, month_fees)::text`)
  return (result as { rows: unknown[] }).rows
}

/** Counts this many transfers of today against an account, which has none yet. */
export async function chargeQuota(db: Database, account: string, count: number): Promise<void> {
  await db.insert(quotas).values({ account, day: quotaDay(new Date()), count })
}

/** Leaves no transfer and no quota behind. */
export async function clear(db: Database): Promise<void> {
  await db.execute(sql`TRUNCATE transfers, envelopes, quotas, sponsor_floats, settlement_counts, organisation_hours`)
  await db.execute(sql`UPDATE organisation_costs SET day_transfers = 0, day_failed = 0, day_fees = 0, month_transfers = 0,
    month_failed = 0, month_fees = 0`)
}
