import { Keypair } from '@stellar/stellar-sdk'
import { sql } from 'drizzle-orm'
import { connect, signInWithWallet } from '#lib/cli/client/wallet-session.ts'
import { offlineContext } from '#lib/cli/seed/invites.ts'
import { batchRow, insertRows } from '#lib/cli/seed/rows.ts'
import { type Database, openStore } from '#lib/db/connection.ts'
import { pollBatchStatus } from '#lib/directory/batches/status.ts'
import { listPayouts } from '#lib/directory/payouts/payouts.ts'
import type { User } from '#lib/directory/users.ts'
import { take } from '#lib/sdk/payroll-client.ts'
import type { Stage } from './stage.ts'

/** One measured quantity, in words. */
export interface Figure {
  name: string
  found: string
  goal: string
}

const BODY_LIMIT = 256 * 1024
const FEW = 10
const MANY = 10_000
const ALL = 100_000
const PAGE = 100

/** The payout back office: a bulk import over HTTP, and the two reads that a frontend repeats. */
export async function measureDirectory(stage: Stage, databaseUrl: string): Promise<Figure[]> {
  const store = openStore({ url: databaseUrl })
  try {
    const db = await store.database()
    const session = await signInWithWallet(stage.base, stage.payee.signer)
    const imported = await measureImport(stage, session)
    const employer = stage.payee.signer.publicKey()
    const organisation = await organisationOf(db, employer)
    const [few, many] = await fill(db, organisation)
    return [...imported, await measureProgress(db, employer, few, many), await measurePages(db, organisation)]
  } finally {
    await store.close()
  }
}

/** As many rows as the largest body can contain, each with a different address. */
function largestImport(): { rows: { name: string }[] } {
  const rows: { name: string }[] = []
  let size = '{"rows":[]}'.length
  for (let number = 1; ; number += 1) {
    const row = {
      name: `Contractor ${number}`,
      email: `c${number}@example.com`,
      address: Keypair.random().publicKey(),
      amount: 1000,
    }
    size += JSON.stringify(row).length + 1
    if (size > BODY_LIMIT) return { rows }
    rows.push(row)
  }
}

async function measureImport(stage: Stage, session: string): Promise<Figure[]> {
  const body = largestImport()
  stage.proxy.reset()
  const start = performance.now()
  const { imported } = await take(connect(stage.base, session).POST('/contractors/bulk', { body }))
  const seconds = (performance.now() - start) / 1000
  const name = `bulk import of ${imported.length} rows`
  return [
    { name, found: `${(imported.length / seconds).toFixed(0)} rows per second`, goal: 'all rows of the largest body' },
    {
      name: `${name}: ledger look-ups`,
      found: `${stage.proxy.count()} calls`,
      goal: `${Math.ceil(imported.length / 200)} calls`,
    },
  ]
}

async function measureProgress(db: Database, sub: string, few: string, many: string): Promise<Figure> {
  const identity = { kind: 'ledger', sub } as const
  const read = (id: string) => () => pollBatchStatus(offlineContext(db, new Date()), { identity, id })
  const before = await readStatistics(db)
  const ratio = await compare(read(many), read(few), 500)
  const { seqScan, idxScan } = await readStatistics(db)
  const index = idxScan > before.idxScan || seqScan > before.seqScan ? 'payouts are read' : 'no payout is read'
  return {
    name: `batch status, ${MANY} payouts against ${FEW}`,
    found: `ratio ${ratio.toFixed(2)}, ${index}`,
    goal: 'at most 1.20, no payout is read',
  }
}

async function measurePages(db: Database, organisation: string): Promise<Figure> {
  const { rows } = await execute<{ at: string; place: string }>(
    db,
    sql`SELECT (extract(epoch FROM created_at) * 1000)::bigint::text AS at, payouts.sequence::text AS place FROM payouts
      WHERE organisation = ${organisation} ORDER BY payouts.created_at, payouts.sequence LIMIT 1 OFFSET ${PAGE}`,
  )
  const [row] = rows
  const after = { createdAt: new Date(Number(row?.at)), sequence: Number(row?.place) }
  const user: User = {
    identity: { kind: 'ledger', sub: 'bench' },
    identities: [],
    organisationId: organisation,
    organisation: { id: organisation, name: 'bench', notifyPayees: false },
    records: [],
    isInvited: false,
    cameInvited: false,
  }
  const read = (from: typeof after | undefined) => async () => {
    const page = await listPayouts({ ...offlineContext(db, new Date()), user }, { limit: PAGE, cursor: from })
    if (page.items.length !== PAGE) throw new Error(`a page of ${page.items.length}`)
  }
  const before = await readStatistics(db)
  const ratio = await compare(read(after), read(undefined), 100)
  const { seqScan, idxScan } = await readStatistics(db)
  const scans = `${seqScan - before.seqScan} sequential scans of ${seqScan + idxScan - before.seqScan - before.idxScan}`
  return {
    name: `payouts, last page of ${ALL} against first`,
    found: `ratio ${ratio.toFixed(2)}, ${scans}`,
    goal: 'at most 1.50, 0 sequential',
  }
}

/** The median of `one` over the median of `other`, measured alternately so that both run under the same load. */
async function compare(one: () => Promise<unknown>, other: () => Promise<unknown>, rounds: number): Promise<number> {
  const times: [number[], number[]] = [[], []]
  for (let round = 0; round < rounds + 20; round += 1) {
    for (const [index, work] of [one, other].entries()) {
      const start = performance.now()
      await work()
      // The first rounds warm up.
      if (round >= 20) times[index]?.push(performance.now() - start)
    }
  }
  const [median, base] = times.map((all) => all.sort((a, b) => a - b)[Math.floor(all.length / 2)] ?? 0)
  return (median ?? 0) / (base ?? 1)
}

/** How many times the table of payouts has been scanned, in all sessions. */
async function readStatistics(db: Database): Promise<{ seqScan: number; idxScan: number }> {
  await db.execute(sql`SELECT pg_stat_force_next_flush()`)
  const { rows } = await execute<{ seq: string; idx: string }>(
    db,
    sql`SELECT seq_scan::text AS seq, idx_scan::text AS idx FROM pg_stat_user_tables WHERE relname = 'payouts'`,
  )
  return { seqScan: Number(rows[0]?.seq), idxScan: Number(rows[0]?.idx) }
}

async function organisationOf(db: Database, address: string): Promise<string> {
  const { rows } = await execute<{ organisation: string }>(
    db,
    sql`SELECT organisation FROM identities WHERE kind = 'ledger' AND sub = ${address}`,
  )
  const [row] = rows
  if (!row) throw new Error('no organisation')
  return row.organisation
}

/** `ALL` payouts in batches of `MANY`, and one more batch of `FEW`. Resolves to the ids of a small and a large batch. */
async function fill(db: Database, organisation: string): Promise<[few: string, many: string]> {
  await db.execute(sql`INSERT INTO contractors (organisation, name, status, invite_expires_at)
    SELECT ${organisation}, 'payee ' || n, 'ready', now() FROM generate_series(1, ${MANY}) n`)
  const batch = async (payouts: number, age: number) => {
    const row = batchRow({ organisation, status: 'ready', payoutCount: payouts })
    await insertRows(db, { batches: [row] })
    await db.execute(sql`INSERT INTO payouts (organisation, batch, contractor, status, encrypted_amount, created_at)
      SELECT ${organisation}, ${row.id}, id, 'ready', 'sealed', now() - ${age} * interval '1 day'
      FROM contractors WHERE organisation = ${organisation} AND name LIKE 'payee %' ORDER BY sequence LIMIT ${payouts}`)
    return row.id
  }
  let many = ''
  for (let made = 0; made < ALL; made += MANY) many = await batch(MANY, 1 + made / MANY)
  const few = await batch(FEW, 0)
  await db.execute(sql`ANALYZE payouts, batches, contractors`)
  return [few, many]
}

async function execute<Row>(db: Database, query: ReturnType<typeof sql>): Promise<{ rows: Row[] }> {
  return (await db.execute(query)) as unknown as { rows: Row[] }
}
