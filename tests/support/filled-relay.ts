import { CHANNELS, paidOf } from './filled-organisation.ts'

interface FilledRun {
  payouts: number
  token: string
  relayKey: string
}

/** The unfinished run of the largest organisation's batch, whose next items hold all channels. */
export function* channelsAndRun({ payouts, token, relayKey }: FilledRun): Generator<string> {
  const paid = paidOf(payouts)
  yield `INSERT INTO batch_jobs (id, user_kind, user_sub, relay_key, batch, manifest, signature, quota_day, created_at)
    VALUES (pg_temp.id('run', 0), 'ledger', pg_temp.address('large', 0), '${relayKey}', pg_temp.id('large batch', 0), 'manifest',
      'signature', current_date::text, now() - interval '1 hour')`
  yield `INSERT INTO batch_items (job, position, status, recipient, payout, spender, channel, sealed_amount, signed_xdr, quota_account,
      inner_hash, hash, queued_at, sent_at, settled_at)
    SELECT pg_temp.id('run', 0), c - 1, status, pg_temp.address('large contractor', c), pg_temp.id('large payout', c), channel,
      CASE WHEN status <> 'queued' THEN channel END, CASE WHEN status <> 'paid' THEN 'sealed' END,
      CASE status WHEN 'signed' THEN 'signed' END, pg_temp.address('large', 0),
      CASE WHEN status IN ('paid', 'signed') THEN pg_temp.hash('large inner', c) END,
      CASE status WHEN 'paid' THEN pg_temp.hash('large outer', c) END, now() - interval '1 hour',
      CASE status WHEN 'paid' THEN now() END, CASE status WHEN 'paid' THEN now() END
    FROM generate_series(1, ${payouts}) c, LATERAL (SELECT pg_temp.address('channel', c % ${CHANNELS}) AS channel,
      CASE WHEN c <= ${paid} THEN 'paid' WHEN c <= ${paid + CHANNELS / 2} THEN 'signed' WHEN c <= ${paid + CHANNELS} THEN 'taken'
        ELSE 'queued' END AS status) AS made`
  yield `INSERT INTO relay_channels (token, address, sealed_balance, item_job, item_position, runs, seen_at, read_at)
    SELECT '${token}', channel, 'balance', job, position, true, now(), now() FROM batch_items
    WHERE status IN ('taken', 'signed')`
}
