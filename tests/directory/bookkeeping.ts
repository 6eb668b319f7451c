import { sql } from 'drizzle-orm'
import type { Database } from '#lib/db/connection.ts'

/**
 * Lists the contradictions between batches, payouts, contractors and transfers in one snapshot. A batch's counters and
 * status must match its payouts, and pending, paid and failed payouts their transfers.
 */
export async function findContradictions(db: Database): Promise<unknown[]> {
  const result = await db.execute(sql`
    WITH counts AS (
      SELECT b.*, count(p.id) FILTER (WHERE p.status <> 'canceled') AS payouts,
        count(p.id) FILTER (WHERE p.status = 'draft') AS drafts,
        count(p.id) FILTER (WHERE p.status = 'ready') AS ready,
        count(p.id) FILTER (WHERE p.status = 'pending') AS pending,
        count(p.id) FILTER (WHERE p.status = 'paid') AS paid,
        count(p.id) FILTER (WHERE p.status = 'failed') AS failures,
        count(p.id) FILTER (WHERE p.status = 'canceled') AS canceled
      FROM batches b LEFT JOIN payouts p ON p.batch = b.id GROUP BY b.id
    ), expected AS (
      SELECT *, CASE
        WHEN status = 'draft' AND ready + pending + paid + failures = 0 THEN 'draft'
        WHEN drafts > 0 THEN 'no drafts outside of one'
        -- A batch that was started stays so, even if every payout that was sent has failed and was canceled.
        WHEN pending + paid + failures = 0 AND (canceled = 0 OR started_at IS NULL) THEN 'ready'
        WHEN ready + pending > 0 THEN 'started'
        WHEN failures > 0 OR payouts = 0 THEN 'failed'
        ELSE 'completed' END AS should_be
      FROM counts
    )
    SELECT 'counters of ' || id AS what FROM expected
      WHERE payout_count <> payouts OR settled_count <> paid OR failed_count <> failures
    UNION ALL SELECT 'status ' || status || ' of ' || id || ', not ' || should_be FROM expected WHERE status <> should_be
    UNION ALL SELECT 'times of ' || id FROM expected
      WHERE (started_at IS NOT NULL) <> (status IN ('started', 'completed', 'failed'))
        OR (completed_at IS NOT NULL) <> (status = 'completed')
    UNION ALL SELECT 'pending without an open transfer: ' || p.id FROM payouts p
      LEFT JOIN transfers t ON t.id = p.transfer AND t.status = CASE WHEN p.error IS NULL THEN 'open' ELSE 'unknown' END
      WHERE p.status = 'pending' AND t.payout IS DISTINCT FROM p.id
    UNION ALL SELECT 'paid by nothing: ' || p.id FROM payouts p
      LEFT JOIN transfers t ON t.hash = p.tx_hash AND t.status = 'succeeded'
      WHERE p.status = 'paid' AND t.payout IS DISTINCT FROM p.id
    UNION ALL SELECT 'not paid by ' || t.id FROM transfers t JOIN payouts p ON p.id = t.payout
      WHERE t.status = 'succeeded' AND (p.status <> 'paid' OR p.transfer <> t.id)
    UNION ALL SELECT 'sent again while a transfer was open: ' || p.id FROM payouts p JOIN transfers t ON t.payout = p.id
      WHERE t.status IN ('open', 'unknown') AND t.id <> p.transfer
    UNION ALL SELECT 'an error on ' || id FROM payouts WHERE (status = 'failed') <> (error IS NOT NULL) AND status <> 'pending'
      AND NOT (status = 'canceled' AND tx_hash IS NOT NULL)
    UNION ALL SELECT 'last paid: ' || c.id FROM contractors c
      LEFT JOIN payouts p ON p.contractor = c.id AND p.status = 'paid'
      GROUP BY c.id HAVING c.last_paid_at IS DISTINCT FROM max(p.paid_at)`)
  return (result as unknown as { rows: unknown[] }).rows
}
