/** The channels that pay the run of the largest organisation. */
export const CHANNELS = 10
/** How many of them have an open transfer. */
export const SENDING = 5

/** More of the largest organisation's payouts are paid than any list counts. */
export const paidOf = (payouts: number) => Math.floor((payouts * 2) / 3)

/** An organisation with one started batch that pays all of its contractors, half of the payments by channels. */
export function* largeOrganisation(payouts: number): Generator<string> {
  const paid = paidOf(payouts)
  const sent = paid + SENDING
  yield `INSERT INTO organisations (id, name, created_at) VALUES (pg_temp.id('large', 0), 'The large employer', now() - interval '40 days')`
  yield `INSERT INTO identities (kind, sub, organisation) VALUES ('ledger', pg_temp.address('large', 0), pg_temp.id('large', 0))`
  yield `INSERT INTO contractors (id, organisation, name, status, address, invite_expires_at, created_at)
    SELECT pg_temp.id('large contractor', c), pg_temp.id('large', 0), 'Payee ' || c, 'ready', pg_temp.address('large contractor', c), now(),
      now() - interval '40 days' FROM generate_series(1, ${payouts}) c`
  yield `INSERT INTO batches (id, organisation, name, status, payout_count, settled_count, created_at, started_at, progressed_at)
    VALUES (pg_temp.id('large batch', 0), pg_temp.id('large', 0), 'All', 'started', ${payouts}, ${paid},
      now() - interval '30 days', now() - interval '30 days', now() - interval '26 days')`
  yield `INSERT INTO payouts (id, organisation, batch, contractor, status, address, encrypted_amount, transfer, tx_hash, created_at, paid_at)
    SELECT pg_temp.id('large payout', c), pg_temp.id('large', 0), pg_temp.id('large batch', 0), pg_temp.id('large contractor', c),
      CASE WHEN paid THEN 'paid' WHEN c <= ${sent} THEN 'pending' ELSE 'ready' END, pg_temp.address('large contractor', c), 'sealed',
      CASE WHEN c <= ${sent} THEN pg_temp.id('large transfer', c) END, CASE WHEN paid THEN pg_temp.hash('large outer', c) END,
      now() - interval '30 days', CASE WHEN paid THEN now() - interval '29 days' END
    FROM generate_series(1, ${payouts}) c, LATERAL (SELECT c <= ${paid} AS paid) AS made`
  yield `INSERT INTO transfers (id, kind, account, owner, quota_account, sequence_number, recipient, sponsor, quota_day, bid,
      recorded_ledger, status, organisation, payout, line_job, line_position, hash, applied, ledger, applied_at, result_code,
      fee_charged, created_at, settled_at)
    SELECT pg_temp.id('large transfer', c), CASE WHEN delegated THEN 'delegated' ELSE 'transfer' END,
      CASE WHEN delegated THEN pg_temp.address('channel', c % ${CHANNELS}) ELSE pg_temp.address('large', 0) END,
      CASE WHEN delegated THEN pg_temp.address('large', 0) END, CASE WHEN delegated THEN pg_temp.address('large', 0) END, c,
      pg_temp.address('large contractor', c), pg_temp.address('sponsor', 0), at::date::text, 100000, c,
      CASE WHEN paid THEN 'succeeded' ELSE 'open' END, pg_temp.id('large', 0), pg_temp.id('large payout', c),
      CASE WHEN delegated THEN pg_temp.id('run', 0) END, CASE WHEN delegated THEN c - 1 END,
      CASE WHEN paid THEN pg_temp.hash('large outer', c) END, CASE WHEN paid THEN pg_temp.hash('large inner', c) END,
      CASE WHEN paid THEN c END, CASE WHEN paid THEN at END, CASE WHEN paid THEN 'txSuccess' END, CASE WHEN paid THEN 60000 END, at,
      CASE WHEN paid THEN at + interval '6 seconds' END
    FROM generate_series(1, ${sent}) c, LATERAL (SELECT c <= ${paid} AS paid, c % 2 = 0 OR c > ${paid} AS delegated,
      CASE WHEN c > ${paid} THEN now() ELSE now() - interval '29 days' + c * interval '5 seconds' END AS at) AS made`
  yield `INSERT INTO envelopes (inner_hash, outer_hash, transfer, bid, max_time, recorded_at)
    SELECT pg_temp.hash('large inner', c), pg_temp.hash('large outer', c), pg_temp.id('large transfer', c), 100000, 1, now() - interval '29 days'
    FROM generate_series(1, ${sent}) c`
}
