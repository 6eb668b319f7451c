import { createHash } from 'node:crypto'
import { Keypair } from '@stellar/stellar-sdk'
import { Client } from 'pg'

/** Records of a filled database, whose pages and routes a measurement reads. */
export interface FilledRecords {
  /** the sub of the only user of `organisation`, an employer of average size */
  employer: string
  organisation: string
  contractor: string
  address: string
  batch: string
  payout: string
  transfer: string
  hash: string
  job: string
  /** an organisation with a batch that pays each of its many contractors */
  largeEmployer: string
  largeOrganisation: string
  largeBatch: string
}

/** Records per payout, as three million payouts of 20,000 employers have them. */
const PAYOUTS_PER = { organisation: 150, contractor: 6, batch: 15, job: 150, refusal: 100 }
const DAYS = 90
const MOST_CONTRACTORS = 50_000
/** The last batches have begun and not ended; each of the very last has an open transfer. */
const STARTED = 0.002
const OPEN = 10

/** Ids and addresses that follow from a number, so that statements can refer to each other's rows. */
const FUNCTIONS = `
  CREATE FUNCTION pg_temp.id(kind text, n bigint) RETURNS uuid IMMUTABLE LANGUAGE sql AS $$ SELECT md5(kind || n::text)::uuid $$;
  CREATE FUNCTION pg_temp.hash(kind text, n bigint) RETURNS text IMMUTABLE LANGUAGE sql
    AS $$ SELECT md5(kind || n::text) || md5(n::text || kind) $$;
  CREATE FUNCTION pg_temp.address(kind text, n bigint) RETURNS text IMMUTABLE LANGUAGE sql
    AS $$ SELECT 'G' || left(translate(upper(md5(kind || n::text) || md5(n::text || kind)), '0189', 'WXYZ'), 55) $$`

/**
 * Fills a migrated PostgreSQL by SQL with `payouts` payouts and everything that belongs to them. Every constraint is
 * enforced; indexes that enforce none are built afterwards.
 */
export async function fillDatabase(url: string, payouts: number): Promise<FilledRecords> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(FUNCTIONS)
    await client.query(`SET synchronous_commit = off; SET maintenance_work_mem = '256MB'`)
    const indexes = await dropIndexes(client)
    for (const statement of statements(payouts)) await client.query(statement)
    for (const { indexdef } of indexes) await client.query(indexdef)
    await client.query('ANALYZE')
    return await findRecords(client, payouts)
  } finally {
    await client.end()
  }
}

/** Drops the indexes that only queries need, and resolves to their definitions. */
async function dropIndexes(client: Client): Promise<{ indexdef: string }[]> {
  const { rows } =
    await client.query(`SELECT indexrelid::regclass::text AS indexname, pg_get_indexdef(indexrelid) AS indexdef
    FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE relnamespace = 'public'::regnamespace AND NOT indisunique`)
  for (const { indexname } of rows) await client.query(`DROP INDEX ${indexname}`)
  return rows
}

function* statements(payouts: number): Generator<string> {
  const counts = Object.fromEntries(
    Object.entries(PAYOUTS_PER).map(([record, per]) => [record, Math.ceil(payouts / per)]),
  ) as typeof PAYOUTS_PER
  const { organisation, contractor, batch, job, refusal } = counts
  const at = (n: string, all: number) => `now() - interval '${DAYS} days' * (1 - (${n})::float / ${all})`
  const batchState = `CASE WHEN b >= ${Math.floor(batch * (1 - STARTED))} THEN 'started' WHEN b % 40 = 7 THEN 'failed' ELSE 'completed' END`
  yield `INSERT INTO organisations (id, name, created_at) SELECT pg_temp.id('organisation', o), 'Employer ' || o, ${at('o', organisation)}
    FROM generate_series(0, ${organisation - 1}) o`
  yield `INSERT INTO identities (kind, sub, organisation) SELECT 'ledger', pg_temp.address('employer', o), pg_temp.id('organisation', o)
    FROM generate_series(0, ${organisation - 1}) o`
  yield `INSERT INTO contractors (id, organisation, name, status, email, email_folded, address, invite_expires_at, created_at)
    SELECT pg_temp.id('contractor', c), pg_temp.id('organisation', c % ${organisation}), 'Contractor ' || md5(c::text),
      CASE WHEN c % 50 = 3 THEN 'invited' ELSE 'ready' END, 'c' || c || '@example.com', 'c' || c || '@example.com',
      pg_temp.address('contractor', c), now(), ${at('c', contractor)}
    FROM generate_series(0, ${contractor - 1}) c`
  yield `INSERT INTO batches (id, organisation, name, status, payout_count, settled_count, failed_count, created_at, started_at, progressed_at, failed_at, completed_at)
    SELECT pg_temp.id('batch', b), pg_temp.id('organisation', b % ${organisation}), 'Payroll ' || b, state, 15,
      CASE state WHEN 'completed' THEN 15 WHEN 'failed' THEN 14 ELSE 10 END, CASE state WHEN 'failed' THEN 1 ELSE 0 END,
      at, at + interval '1 minute', at + interval '10 minutes', CASE state WHEN 'failed' THEN at + interval '10 minutes' END,
      CASE state WHEN 'completed' THEN at + interval '10 minutes' END
    FROM generate_series(0, ${batch - 1}) b, LATERAL (SELECT ${batchState} AS state, ${at('b', batch)} AS at) AS made`
  yield payoutRows(counts, batchState, at)
  yield transferRows
  yield `INSERT INTO envelopes (inner_hash, outer_hash, transfer, signed, bid, max_time, recorded_at, first_sent_at, last_sent_at)
    SELECT pg_temp.hash('inner', p), pg_temp.hash('outer', p), pg_temp.id('transfer', p),
      CASE WHEN at > now() - interval '1 day' THEN repeat('A', 2000) END, 100000, 1, at, at, at FROM filled_payouts WHERE transferred`
  yield `INSERT INTO audit_log (at, organisation, actor_kind, actor_sub, action, subject_id, request_id, detail)
    SELECT at, pg_temp.id('organisation', o), 'ledger', pg_temp.address('employer', o), 'transfer.sponsored',
      pg_temp.hash('inner', p), pg_temp.id('request', p)::text,
      jsonb_build_object('transfer', pg_temp.id('transfer', p), 'payout', pg_temp.id('payout', p))
    FROM filled_payouts WHERE transferred`
  yield `INSERT INTO audit_log (at, organisation, actor_kind, actor_sub, action, subject_id, detail)
    SELECT at + interval '6 seconds', pg_temp.id('organisation', o), 'service', 'settlement', 'payout.' || status,
      pg_temp.id('payout', p)::text, jsonb_build_object('transfer', pg_temp.id('transfer', p)) FROM filled_payouts WHERE settled`
  yield* largeOrganisation(Math.min(MOST_CONTRACTORS, Math.ceil(payouts / 20)))
  yield `INSERT INTO audit_log (at, actor_kind, actor_sub, action, subject_id, detail)
    SELECT ${at('r', refusal)}, 'ledger', pg_temp.address('refused', r), 'transfer.refused', pg_temp.hash('refused', r),
      '{"reason": "quota-transfers"}' FROM generate_series(1, ${refusal}) r`
  yield `INSERT INTO refusals (account, hour, reason, count, last_hash, last_at)
    SELECT pg_temp.address('refused', r), to_char(at, 'YYYY-MM-DD"T"HH24'), 'quota-transfers', 2, pg_temp.hash('refused', r), at
    FROM generate_series(1, ${refusal}) r, LATERAL (SELECT ${at('r', refusal)} AS at) AS made WHERE at > now() - interval '30 days'`
  yield `INSERT INTO batch_jobs (id, user_kind, user_sub, relay_key, status, created_at, ended_at)
    SELECT pg_temp.id('job', j), 'ledger', pg_temp.address('employer', j % ${organisation}), 'key',
      CASE WHEN j % 40 = 7 THEN 'failed' ELSE 'completed' END, ${at('j', job)}, ${at('j', job)} FROM generate_series(1, ${job}) j`
  yield `INSERT INTO batch_items (job, position, status, recipient, quota_account, hash, queued_at, sent_at, settled_at)
    SELECT pg_temp.id('job', j), i, CASE WHEN j % 40 = 7 AND i = 0 THEN 'failed' ELSE 'paid' END,
      pg_temp.address('contractor', j * 7 + i), pg_temp.address('employer', j % ${organisation}), pg_temp.hash('item', j * 10 + i),
      ${at('j', job)}, ${at('j', job)}, ${at('j', job)} FROM generate_series(1, ${job}) j, generate_series(0, 9) i`
  yield `INSERT INTO quotas (account, day, used, count) SELECT pg_temp.address('employer', o), at::date::text, 1000, 15
    FROM generate_series(0, ${organisation - 1}) o, generate_series(0, ${DAYS - 1}, 10) d, LATERAL (SELECT now() - d * interval '1 day' AS at) AS made`
  yield `INSERT INTO quotas (account, day, used, count) SELECT '*', (now() - d * interval '1 day')::date::text, 1000, 15
    FROM generate_series(0, ${DAYS - 1}) d`
}

type At = (n: string, all: number) => string

/** The payouts of all batches; a temporary table keeps the values that their transfers need. */
function payoutRows({ organisation, contractor, batch }: typeof PAYOUTS_PER, batchState: string, at: At): string {
  const ofOrganisation = Math.floor(contractor / organisation)
  return `CREATE TEMP TABLE filled_payouts AS
    SELECT b * 15 + i AS p, b, o, o + ${organisation} * ((b / ${organisation} + i) % ${ofOrganisation}) AS c, at,
      status, status IN ('paid', 'failed') AS settled, status <> 'ready' AS transferred
    FROM generate_series(0, ${batch - 1}) b, generate_series(0, 14) i,
      LATERAL (SELECT b % ${organisation} AS o, ${at('b', batch)} + i * interval '5 seconds' AS at,
        CASE ${batchState} WHEN 'failed' THEN CASE i WHEN 3 THEN 'failed' ELSE 'paid' END
          WHEN 'started' THEN CASE WHEN i < 10 THEN 'paid' WHEN i = 10 AND b >= ${batch - OPEN} THEN 'pending' ELSE 'ready' END
          ELSE 'paid' END AS status) AS made;
    ANALYZE filled_payouts;
    INSERT INTO payouts (id, organisation, batch, contractor, status, address, encrypted_amount, transfer, tx_hash, error, created_at, paid_at)
    SELECT pg_temp.id('payout', p), pg_temp.id('organisation', o), pg_temp.id('batch', b), pg_temp.id('contractor', c), status,
      pg_temp.address('contractor', c), CASE WHEN settled THEN repeat('e', 100) ELSE 'sealed' END,
      CASE WHEN transferred THEN pg_temp.id('transfer', p) END, CASE status WHEN 'paid' THEN pg_temp.hash('outer', p) END,
      CASE status WHEN 'failed' THEN 'the transfer failed on the ledger: txFailed' END, at, CASE status WHEN 'paid' THEN at + interval '6 seconds' END
    FROM filled_payouts ORDER BY p`
}

/** The transfer of every payout that was sent. A failed payout's expired or failed. */
const transferRows = `INSERT INTO transfers (id, kind, account, sequence_number, recipient, sponsor, quota_day, bid, recorded_ledger,
      status, organisation, request_id, payout, hash, applied, ledger, applied_at, result_code, contract_error, fee_charged, created_at, settled_at)
    SELECT pg_temp.id('transfer', p), 'transfer', pg_temp.address('employer', o), p,
      pg_temp.address('contractor', c), pg_temp.address('sponsor', 0), at::date::text, 100000, 1000 + p,
      state, pg_temp.id('organisation', o), pg_temp.id('request', p)::text, pg_temp.id('payout', p), CASE WHEN applied THEN pg_temp.hash('outer', p) END,
      CASE WHEN applied THEN pg_temp.hash('inner', p) END, CASE WHEN applied THEN 1001 + p END,
      CASE WHEN applied THEN at + interval '5 seconds' END, CASE state WHEN 'failed' THEN 'txFailed' WHEN 'succeeded' THEN 'txSuccess' END,
      CASE state WHEN 'failed' THEN 3506 END, CASE WHEN applied THEN 60000 END, at,
      CASE WHEN state <> 'open' THEN at + interval '4 seconds' + (p % 70) * interval '0.1 seconds' END
    FROM filled_payouts, LATERAL (SELECT CASE status WHEN 'paid' THEN 'succeeded' WHEN 'pending' THEN 'open'
        ELSE CASE p % 2 WHEN 0 THEN 'expired' ELSE 'failed' END END AS state) AS named,
      LATERAL (SELECT state IN ('succeeded', 'failed') AS applied) AS known
    WHERE transferred ORDER BY p`

/** An organisation with one started batch that pays all of its contractors; half are paid. */
function* largeOrganisation(payouts: number): Generator<string> {
  yield `INSERT INTO organisations (id, name, created_at) VALUES (pg_temp.id('large', 0), 'The large employer', now() - interval '40 days')`
  yield `INSERT INTO identities (kind, sub, organisation) VALUES ('ledger', pg_temp.address('large', 0), pg_temp.id('large', 0))`
  yield `INSERT INTO contractors (id, organisation, name, status, address, invite_expires_at, created_at)
    SELECT pg_temp.id('large contractor', c), pg_temp.id('large', 0), 'Payee ' || c, 'ready', pg_temp.address('large contractor', c), now(),
      now() - interval '40 days' FROM generate_series(1, ${payouts}) c`
  yield `INSERT INTO batches (id, organisation, name, status, payout_count, settled_count, created_at, started_at, progressed_at)
    VALUES (pg_temp.id('large batch', 0), pg_temp.id('large', 0), 'All', 'started', ${payouts}, ${Math.floor(payouts / 2)},
      now() - interval '30 days', now() - interval '30 days', now() - interval '26 days')`
  yield `INSERT INTO payouts (id, organisation, batch, contractor, status, address, encrypted_amount, transfer, tx_hash, created_at, paid_at)
    SELECT pg_temp.id('large payout', c), pg_temp.id('large', 0), pg_temp.id('large batch', 0), pg_temp.id('large contractor', c),
      CASE WHEN paid THEN 'paid' ELSE 'ready' END, pg_temp.address('large contractor', c), 'sealed',
      CASE WHEN paid THEN pg_temp.id('large transfer', c) END, CASE WHEN paid THEN pg_temp.hash('large outer', c) END,
      now() - interval '30 days', CASE WHEN paid THEN now() - interval '29 days' END
    FROM generate_series(1, ${payouts}) c, LATERAL (SELECT c <= ${Math.floor(payouts / 2)} AS paid) AS made`
  yield `INSERT INTO transfers (id, kind, account, sequence_number, recipient, sponsor, quota_day, bid, recorded_ledger,
      status, organisation, payout, hash, applied, ledger, applied_at, result_code, fee_charged, created_at, settled_at)
    SELECT pg_temp.id('large transfer', c), 'transfer', pg_temp.address('large', 0), c,
      pg_temp.address('large contractor', c), pg_temp.address('sponsor', 0), at::date::text, 100000, c, 'succeeded', pg_temp.id('large', 0),
      pg_temp.id('large payout', c), pg_temp.hash('large outer', c), pg_temp.hash('large inner', c), c, at, 'txSuccess', 60000, at,
      at + interval '6 seconds'
    FROM generate_series(1, ${Math.floor(payouts / 2)}) c, LATERAL (SELECT now() - interval '29 days' + c * interval '5 seconds' AS at) AS made`
  yield `INSERT INTO envelopes (inner_hash, outer_hash, transfer, bid, max_time, recorded_at)
    SELECT pg_temp.hash('large inner', c), pg_temp.hash('large outer', c), pg_temp.id('large transfer', c), 100000, 1, now() - interval '29 days'
    FROM generate_series(1, ${Math.floor(payouts / 2)}) c`
}

/** Finds records in the middle of the filled ones, and gives their employers accounts that can sign in. */
async function findRecords(client: Client, payouts: number): Promise<FilledRecords> {
  const b = Math.floor(payouts / PAYOUTS_PER.batch / 2)
  const p = b * PAYOUTS_PER.batch
  const { rows } = await client.query(
    `SELECT organisation, contractor, address, batch, payouts.id AS payout, transfer, tx_hash AS hash,
      jobs.id AS job, pg_temp.id('large', 0) AS "largeOrganisation", pg_temp.id('large batch', 0) AS "largeBatch"
    FROM payouts JOIN identities USING (organisation) JOIN LATERAL (
      SELECT id FROM batch_jobs WHERE user_sub = sub LIMIT 1) AS jobs ON true
    WHERE payouts.id = pg_temp.id('payout', $1)`,
    [p],
  )
  const records: FilledRecords = { ...rows[0], employer: accountOf('employer'), largeEmployer: accountOf('large') }
  for (const [sub, organisation] of [
    [records.employer, records.organisation],
    [records.largeEmployer, records.largeOrganisation],
  ]) {
    await client.query(
      `WITH former AS (SELECT sub FROM identities WHERE organisation = $2)
      UPDATE batch_jobs SET user_sub = $1 FROM former WHERE user_sub = sub`,
      [sub, organisation],
    )
    await client.query('UPDATE identities SET sub = $1 WHERE organisation = $2', [sub, organisation])
  }
  return records
}

const accountOf = (name: string) => Keypair.fromRawEd25519Seed(createHash('sha256').update(name).digest()).publicKey()
