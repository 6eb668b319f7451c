import { CHANNELS, paidOf, SENDING } from './filled-organisation.ts'

interface FilledRun {
  payouts: number
  token: string
  relayKey: string
}

/**
 * The unfinished run of the largest organisation's batch: half of the channels have an open transfer, and hosts lease a line
 * for the others. The payouts that the client paid are canceled lines.
 */
export function* channelsAndRun({ payouts, token, relayKey }: FilledRun): Generator<string> {
  const paid = paidOf(payouts)
  yield `INSERT INTO relay_jobs (id, user_kind, user_sub, relay_key, batch, manifest, signature, quota_day, created_at)
    VALUES (pg_temp.id('run', 0), 'ledger', pg_temp.address('large', 0), '${relayKey}', pg_temp.id('large batch', 0), 'manifest',
      'signature', current_date::text, now() - interval '1 hour')`
  yield `INSERT INTO relay_lines (job, position, outcome, recipient, payout, spender, live_until, channel, leased_until, sealed_amount,
      quota_account, hash, queued_at, due, sent_at, settled_at)
    SELECT pg_temp.id('run', 0), c - 1, outcome, pg_temp.address('large contractor', c), pg_temp.id('large payout', c), spender, 100000000,
      CASE WHEN is_sent OR is_leased OR outcome = 'paid' THEN spender END, CASE WHEN is_leased THEN now() + interval '1 hour' END,
      CASE WHEN outcome IS NULL THEN 'sealed' END, pg_temp.address('large', 0),
      CASE outcome WHEN 'paid' THEN pg_temp.hash('large outer', c) END, now() - interval '1 hour', now() - interval '1 hour',
      CASE WHEN is_sent OR outcome = 'paid' THEN now() END, CASE WHEN outcome IS NOT NULL THEN now() END
    FROM generate_series(1, ${payouts}) c, LATERAL (SELECT pg_temp.address('channel', c % ${CHANNELS}) AS spender,
      CASE WHEN c > ${paid} THEN NULL WHEN c % 2 = 0 THEN 'paid' ELSE 'canceled' END AS outcome,
      c > ${paid} AND c <= ${paid + SENDING} AS is_sent,
      c > ${paid + SENDING} AND c <= ${paid + CHANNELS} AS is_leased) AS made`
  yield `INSERT INTO relay_channels (token, address, sealed_balance, adopted_sequence, runs, seen_at, read_at)
    SELECT '${token}', pg_temp.address('channel', c), 'balance', 1, true, now(), now() FROM generate_series(0, ${CHANNELS - 1}) c`
}
