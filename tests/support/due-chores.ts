import { Client } from 'pg'

/** How much of each kind is due: several rounds. */
const DUE = 5_000
/** Each line ends in a separate SQL transaction. */
const LINES = 100

/** Leaves work for the chores of a filled database. */
export async function makeChoresDue(url: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(`INSERT INTO used_challenges (hash, expires_at)
      SELECT 'expired ' || n, now() - interval '1 hour' FROM generate_series(1, ${DUE}) n`)
    await client.query(`INSERT INTO idempotency_keys (kind, sub, key, fingerprint, outcome, created_at)
      SELECT 'ledger', 'a user', n, 'a body', '{"ids":[]}', now() - interval '25 hours' FROM generate_series(1, ${DUE}) n`)
    await client.query(`INSERT INTO refusals (account, hour, reason, last_hash, last_at)
      SELECT 'expired ' || n, 'hour', 'quota-transfers', 'hash', now() - interval '40 days' FROM generate_series(1, ${DUE}) n`)
    await client.query(`INSERT INTO relay_jobs (id, user_kind, user_sub, relay_key, created_at)
      VALUES (md5('overdue')::uuid, 'ledger', 'overdue', 'a lost key', now() - interval '2 days')`)
    await client.query(`INSERT INTO relay_lines (job, position, sealed_amount, quota_account, queued_at, due)
      SELECT md5('overdue')::uuid, n, 'sealed', 'overdue', now() - interval '2 days', now() - interval '2 days' FROM generate_series(1, ${LINES}) n`)
    await client.query('UPDATE relay_channels SET compared_at = now()')
    await client.query('ANALYZE used_challenges, idempotency_keys, refusals, relay_jobs, relay_lines, relay_channels')
  } finally {
    await client.end()
  }
}
