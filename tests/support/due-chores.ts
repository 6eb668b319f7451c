import { Client } from 'pg'

/** How much of each kind is due: several rounds. */
const DUE = 5_000

/** Leaves work for the chores of a filled database that has been rolled up. */
export async function makeChoresDue(url: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(`INSERT INTO used_challenges (hash, expires_at)
      SELECT 'expired ' || n, now() - interval '1 hour' FROM generate_series(1, ${DUE}) n`)
    await client.query(`INSERT INTO refusals (account, hour, reason, last_hash, last_at)
      SELECT 'expired ' || n, 'hour', 'quota-transfers', 'hash', now() - interval '40 days' FROM generate_series(1, ${DUE}) n`)
    await client.query(`UPDATE rollups SET after = greatest(0, after - ${DUE})`)
    await client.query('ANALYZE used_challenges, refusals, rollups')
  } finally {
    await client.end()
  }
}
