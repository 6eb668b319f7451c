import { createHash } from 'node:crypto'
import { StrKey } from '@stellar/stellar-sdk'
import { Client } from 'pg'
import { archivedEvents } from './filled-archive.ts'
import { settledCounts } from './filled-counts.ts'
import { CHANNELS, largeOrganisation } from './filled-organisation.ts'
import { channelsAndRun } from './filled-relay.ts'

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
  /** the unfinished run of that batch, and a transfer that it paid */
  run: string
  delegated: string
  /** a channel that pays the run */
  channel: string
}

export interface FillOptions {
  payouts: number
  /** the confidential token, C… */
  token: string
  /** thumbprint of the relays' key */
  relayKey: string
}

/** Records per payout, as three million payouts of 20,000 employers have them. */
const PAYOUTS_PER = { organisation: 150, contractor: 6, batch: 15, job: 150, refusal: 100 }
const DAYS = 90
const MAX_CONTRACTORS = 50_000
/** The last batches have begun and not ended; each of the very last has an open transfer. */
const STARTED = 0.002
const OPEN = 10
const RUNNING_JOBS = 10
const WAITING = 2_000

/** The batch whose payouts are in the middle. */
const middle = (payouts: number) => Math.floor(payouts / PAYOUTS_PER.batch / 2)

/**
 * Ids and addresses that follow from a number, so that statements can refer to each other's rows. The employers of the
 * records have accounts that can sign in.
 */
const functions = (payouts: number) => `
  CREATE FUNCTION pg_temp.id(kind text, n bigint) RETURNS uuid IMMUTABLE LANGUAGE sql AS $$ SELECT md5(kind || n::text)::uuid $$;
  CREATE FUNCTION pg_temp.hash(kind text, n bigint) RETURNS text IMMUTABLE LANGUAGE sql
    AS $$ SELECT md5(kind || n::text) || md5(n::text || kind) $$;
  CREATE FUNCTION pg_temp.address(kind text, n bigint) RETURNS text IMMUTABLE LANGUAGE sql
    AS $$ SELECT CASE WHEN kind = 'large' THEN '${accountOf('large')}'
      WHEN kind = 'employer' AND n = ${middle(payouts) % Math.ceil(payouts / PAYOUTS_PER.organisation)} THEN '${accountOf('employer')}'
      WHEN kind = 'channel' THEN ('{${channelAccounts()}}'::text[])[n + 1]
      ELSE 'G' || left(translate(upper(md5(kind || n::text) || md5(n::text || kind)), '0189', 'WXYZ'), 55) END $$`

/**
 * Fills a migrated PostgreSQL by SQL with `payouts` payouts and everything that belongs to them. Keys and
 * indexes are built afterwards, which checks every row.
 */
export async function fillDatabase(url: string, options: FillOptions): Promise<FilledRecords> {
  const { payouts } = options
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(functions(payouts))
    await client.query(`SET synchronous_commit = off; SET maintenance_work_mem = '256MB'`)
    const indexes = await dropIndexes(client)
    for (const statement of statements(options)) await client.query(statement)
    await inviteWallets(client)
    await keepOpen(client)
    for (const statement of indexes) await client.query(statement)
    await client.query('ANALYZE')
    return await findRecords(client, payouts)
  } finally {
    await client.end()
  }
}

/** Drops all keys and indexes. Resolves to the statements that build them again, and check every row. */
async function dropIndexes(client: Client): Promise<string[]> {
  const { rows: constraints } = await client.query<{ change: string; name: string; definition: string }>(`
    SELECT format('ALTER TABLE %s', conrelid::regclass) AS change, quote_ident(conname) AS name, pg_get_constraintdef(oid) AS definition
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype IN ('f', 'p', 'u') ORDER BY contype <> 'f'`)
  for (const { change, name } of constraints) await client.query(`${change} DROP CONSTRAINT ${name}`)
  const { rows: indexes } = await client.query<{ name: string; definition: string }>(`
    SELECT indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS definition
    FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE relnamespace = 'public'::regnamespace`)
  for (const { name } of indexes) await client.query(`DROP INDEX ${name}`)
  const keys = constraints.map(({ change, name, definition }) => `${change} ADD CONSTRAINT ${name} ${definition}`)
  return [...indexes.map(({ definition }) => definition), ...keys.reverse()]
}

function* statements({ payouts, token, relayKey }: FillOptions): Generator<string> {
  const counts = Object.fromEntries(
    Object.entries(PAYOUTS_PER).map(([record, per]) => [record, Math.ceil(payouts / per)]),
  ) as typeof PAYOUTS_PER
  const { organisation, contractor, batch, job, refusal } = counts
  const at = (n: string, all: number) => `now() - interval '${DAYS} days' * (1 - (${n})::float / ${all})`
  const batchState = `CASE WHEN b >= ${Math.floor(batch * (1 - STARTED))} THEN 'started' WHEN b % 40 = 7 THEN 'failed' ELSE 'completed' END`
  const isRunning = `(j > ${job - RUNNING_JOBS})`
  const jobState = `CASE WHEN ${isRunning} THEN 'running' WHEN j % 40 = 7 THEN 'failed' ELSE 'completed' END`
  yield `INSERT INTO organisations (id, name, created_at) SELECT pg_temp.id('organisation', o), 'Employer ' || o, ${at('o', organisation)}
    FROM generate_series(0, ${organisation - 1}) o`
  yield `INSERT INTO identities (kind, sub, organisation) SELECT 'ledger', pg_temp.address('employer', o), pg_temp.id('organisation', o)
    FROM generate_series(0, ${organisation - 1}) o`
  yield `INSERT INTO contractors (id, organisation, name, status, email, email_folded, address, invite_expires_at, created_at)
    SELECT pg_temp.id('contractor', c), pg_temp.id('organisation', c % ${organisation}), 'Contractor ' || md5(c::text),
      CASE WHEN c % 50 = 3 THEN 'invited' ELSE 'ready' END, 'c' || c || '@example.com', 'c' || c || '@example.com',
      CASE WHEN c % 50 <> 3 THEN pg_temp.address('contractor', c) END, now(), ${at('c', contractor)}
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
      CASE WHEN at > now() - interval '2 days' THEN repeat('A', 2000) END, 100000, 1, at, at, at FROM filled_payouts WHERE transferred`
  // In the order of time, in which the log is written.
  yield `INSERT INTO audit_log (at, organisation, actor_kind, actor_sub, action, subject_id, request_id, detail)
    SELECT * FROM (SELECT at, pg_temp.id('organisation', o), 'ledger', pg_temp.address('employer', o), 'transfer.sponsored',
        pg_temp.hash('inner', p), pg_temp.id('request', p)::text,
        jsonb_build_object('transfer', pg_temp.id('transfer', p), 'payout', pg_temp.id('payout', p))
      FROM filled_payouts WHERE transferred
      UNION ALL SELECT at + interval '6 seconds', pg_temp.id('organisation', o), 'service', 'settlement', 'payout.' || status,
        pg_temp.id('payout', p)::text, NULL, jsonb_build_object('transfer', pg_temp.id('transfer', p))
      FROM filled_payouts WHERE settled
      UNION ALL SELECT ${at('r', refusal)}, NULL, 'ledger', pg_temp.address('refused', r), 'transfer.refused',
        pg_temp.hash('refused', r), NULL, '{"reason": "quota-transfers"}' FROM generate_series(1, ${refusal}) r) AS entries
    ORDER BY at`
  // All but the last entries are published.
  yield `INSERT INTO events (number, token, entry, organisation, payee, type, data, created_at)
    SELECT row_number() OVER (ORDER BY log.sequence), left(md5(log.sequence::text), 16), log.sequence, log.organisation, contractor, action,
      jsonb_build_object('payoutId', subject_id, 'contractorId', contractor), at
    FROM audit_log AS log JOIN payouts ON payouts.id::text = subject_id WHERE action IN ('payout.paid', 'payout.failed')
      AND log.sequence < (SELECT max(sequence) - 500 FROM audit_log)`
  yield "SELECT setval(pg_get_serial_sequence('events', 'number'), (SELECT max(number) FROM events))"
  yield "DELETE FROM chores WHERE name IN ('events', 'payment-mails')"
  yield `INSERT INTO chores (name, begun_at, after)
    VALUES ('events', now(), (SELECT max(sequence) - 1000 FROM audit_log)), ('payment-mails', now(), (SELECT max(number) FROM events))`
  const largest = Math.min(MAX_CONTRACTORS, Math.ceil(payouts / 6))
  yield* largeOrganisation(largest)
  yield* channelsAndRun({ payouts: largest, token, relayKey })
  yield* settledCounts
  yield* archivedEvents(token, Math.ceil(payouts / 5))
  yield `INSERT INTO refusals (account, hour, reason, count, last_hash, last_at)
    SELECT pg_temp.address('refused', r), to_char(at, 'YYYY-MM-DD"T"HH24'), 'quota-transfers', 2, pg_temp.hash('refused', r), at
    FROM generate_series(1, ${refusal}) r, LATERAL (SELECT ${at('r', refusal)} AS at) AS made WHERE at > now() - interval '30 days'`
  yield `INSERT INTO relay_jobs (id, user_kind, user_sub, relay_key, status, created_at, ended_at)
    SELECT pg_temp.id('job', j), 'ledger', pg_temp.address('employer', j % ${organisation}), '${relayKey}',
      ${jobState}, ${at('j', job)}, CASE WHEN NOT ${isRunning} THEN ${at('j', job)} END FROM generate_series(1, ${job}) j`
  yield `INSERT INTO relay_lines (job, position, outcome, recipient, quota_account, sealed_amount, hash, error, queued_at, due, sent_at, settled_at)
    SELECT pg_temp.id('job', j), i, outcome, pg_temp.address('contractor', j * 7 + i), pg_temp.address('employer', j % ${organisation}),
      CASE WHEN outcome IS NULL THEN 'sealed' END, CASE outcome WHEN 'paid' THEN pg_temp.hash('line', j * 10 + i) END,
      CASE outcome WHEN 'failed' THEN 'the recipient is not registered' END, at, at, CASE outcome WHEN 'paid' THEN at END,
      CASE WHEN outcome IS NOT NULL THEN at END
    FROM generate_series(1, ${job}) j, generate_series(0, 9) i, LATERAL (SELECT CASE WHEN ${isRunning} THEN NULL
      WHEN j % 40 = 7 AND i = 0 THEN 'failed' ELSE 'paid' END AS outcome, ${at('j', job)} AS at) AS made`
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

/** Gives valid accounts to some of the contractors who were invited: they wait for their registration. */
async function inviteWallets(client: Client): Promise<void> {
  const addresses = Array.from({ length: WAITING }, (_, n) => accountOf(`wallet ${n}`))
  await client.query(
    `UPDATE contractors SET address = wallets.address FROM unnest($1::text[]) WITH ORDINALITY AS wallets (address, n)
      WHERE contractors.id = pg_temp.id('contractor', n * 50 - 47)`,
    [addresses],
  )
}

/** Gives the open transfers accounts that the ledger can be asked about, and envelopes that are never sent and do not expire. */
async function keepOpen(client: Client): Promise<void> {
  const addresses = Array.from({ length: OPEN }, (_, n) => accountOf(`payer ${n}`))
  await client.query(
    `UPDATE transfers SET account = payers.address FROM unnest($1::text[]) WITH ORDINALITY AS payers (address, n)
      JOIN (SELECT id, row_number() OVER () AS n FROM transfers WHERE status = 'open' AND kind = 'transfer') AS open USING (n)
      WHERE transfers.id = open.id`,
    [addresses],
  )
  await client.query(`UPDATE envelopes SET signed = NULL, max_time = 4102444800 FROM transfers
    WHERE transfers.id = envelopes.transfer AND transfers.status = 'open'`)
}

/** Finds records in the middle of the filled ones. */
async function findRecords(client: Client, payouts: number): Promise<FilledRecords> {
  const { rows } = await client.query(
    `SELECT organisation, contractor, address, batch, payouts.id AS payout, transfer, tx_hash AS hash,
      jobs.id AS job, pg_temp.id('large', 0) AS "largeOrganisation", pg_temp.id('large batch', 0) AS "largeBatch",
      pg_temp.id('run', 0) AS run, pg_temp.id('large transfer', 2) AS delegated,
      pg_temp.address('channel', 0) AS channel
    FROM payouts JOIN identities USING (organisation) JOIN LATERAL (
      SELECT id FROM relay_jobs WHERE user_sub = sub LIMIT 1) AS jobs ON true
    WHERE payouts.id = pg_temp.id('payout', $1)`,
    [middle(payouts) * PAYOUTS_PER.batch],
  )
  return { ...rows[0], employer: accountOf('employer'), largeEmployer: accountOf('large') }
}

const channelAccounts = () => Array.from({ length: CHANNELS }, (_, n) => accountOf(`channel ${n}`)).join()

const accountOf = (name: string) =>
  StrKey.encodeEd25519PublicKey(createHash('sha256').update(name).digest() as Uint8Array)
