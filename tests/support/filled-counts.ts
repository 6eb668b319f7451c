const HOUR = `to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24')`

/** The counts of the filled transfers, as settling them one by one would leave them. All took between 4 and 11 seconds. */
export const settledCounts = [
  `INSERT INTO settlement_counts (hour, status, sponsor, below, count, milliseconds, fees)
    SELECT coalesce(hour, 'ever'), status, payer, below, count(*), sum(took), sum(coalesce(fee_charged, 0))
    FROM transfers, LATERAL (SELECT ${HOUR} AS hour, coalesce(sponsor, '') AS payer,
        (extract(epoch FROM settled_at - created_at) * 1000)::bigint AS took) AS of_transfer,
      LATERAL (SELECT CASE WHEN took < 10000 THEN took / 500 * 500 + 500 ELSE 11000 END AS below) AS bucket
    WHERE status <> 'open' GROUP BY GROUPING SETS ((hour, status, payer, below), (status, payer, below))`,
  `INSERT INTO organisation_hours (hour, organisation, transfers, failed, fees)
    SELECT ${HOUR}, organisation, count(*), count(*) FILTER (WHERE status <> 'succeeded'), sum(coalesce(fee_charged, 0))
    FROM transfers WHERE status <> 'open' AND organisation IS NOT NULL GROUP BY 1, 2`,
  `UPDATE organisation_costs SET day_transfers = sums.transfers, day_failed = sums.failed, day_fees = sums.fees,
      month_transfers = sums.transfers, month_failed = sums.failed, month_fees = sums.fees
    FROM (SELECT organisation, sum(transfers) AS transfers, sum(failed) AS failed, sum(fees) AS fees
      FROM organisation_hours GROUP BY 1) AS sums WHERE organisation_costs.organisation = sums.organisation`,
]
