/** The counts of the filled transfers, as settling them one by one would leave them. All took between 4 and 11 seconds. */
export const settledCounts = [
  `INSERT INTO settlement_counts (hour, status, sponsor, below, count, milliseconds, fees)
    SELECT coalesce(hour, 'ever'), status, payer, below, count(*), sum(took), sum(coalesce(fee_charged, 0))
    FROM transfers, LATERAL (SELECT to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24') AS hour,
        coalesce(sponsor, '') AS payer, (extract(epoch FROM settled_at - created_at) * 1000)::bigint AS took) AS of_transfer,
      LATERAL (SELECT CASE WHEN took < 10000 THEN took / 500 * 500 + 500 ELSE 11000 END AS below) AS bucket
    WHERE status <> 'open' GROUP BY GROUPING SETS ((hour, status, payer, below), (status, payer, below))`,
]
