import { nativeToScVal } from '@stellar/stellar-sdk'
import { sql } from 'drizzle-orm'
import { type Archive, openArchive, readAccountEvents } from '#lib/archive/history.ts'
import { ingest } from '#lib/archive/ingest.ts'
import { type Database, openStore } from '#lib/db/connection.ts'
import { openNetwork } from '#lib/stellar/network.ts'
import { accountAt, CONTRACTS, type EventRpc, startEventRpc } from '../support/event-rpc.ts'
import type { Figure } from './directory.ts'

/** A week of the test network: its ledgers, and the events of 250,000 payments with their merges and deposits. */
const LEDGERS = 120_000
const EVENTS = 500_000
/** Every fifth payment is to this account; that account has a hundredth of them. */
const [LARGE, SMALL] = [accountAt(0), accountAt(1)]
const PAGE = 200
const ROUNDS = 20

/** The fields of a transfer event, 32 bytes each but for the point. */
const FIELDS = [
  'b_tilde',
  'b_tilde_aud_s',
  'r_tilde_aud_r',
  'r_tilde_aud_s',
  'sigma',
  'v_tilde',
  'v_tilde_aud_r',
  'v_tilde_aud_s',
]

/**
 * How fast a week of events is ingested, how much disk space an event needs, and the cost of a page of a large account.
 */
export async function measureArchive(databaseUrl: string): Promise<Figure[]> {
  const store = openStore({ url: databaseUrl })
  const fake = await startEventRpc()
  try {
    const db = await store.database()
    fill(fake)
    const network = openNetwork({
      name: 'local',
      passphrase: 'Standalone Network ; February 2017',
      rpcUrl: fake.url,
      pollMs: 100,
    })
    const began = performance.now()
    const stored = await ingest({ network, token: CONTRACTS.token, database: async () => db })
    const seconds = (performance.now() - began) / 1_000
    const archive = await openArchive(db, CONTRACTS.token)
    if (!archive || stored !== EVENTS) throw new Error(`${stored} of ${EVENTS} events were stored`)
    const [large, small] = [await timePages(db, archive, LARGE), await timePages(db, archive, SMALL)]
    return [
      {
        name: `${EVENTS} events in ${LEDGERS} ledgers`,
        found: `${seconds.toFixed(0)} s, ${(EVENTS / seconds).toFixed(0)} events a second`,
        goal: '300 s on two idle cores',
      },
      { name: 'an event on disk, with its indexes', found: `${await bytesPerEvent(db)} bytes`, goal: 'reported' },
      {
        name: `a page of ${PAGE} events of an account with 100,000`,
        found: `${large.toFixed(1)} ms, with 5,000 ${small.toFixed(1)} ms, ratio ${(large / small).toFixed(2)}`,
        goal: 'ratio 2',
      },
    ]
  } finally {
    await fake.close()
    await store.close()
  }
}

function fill(fake: EventRpc): void {
  const fields = FIELDS.map((name, index) => [name, Buffer.alloc(32, index + 1)])
  fake.data = nativeToScVal(Object.fromEntries([...fields, ['r_e_point', Buffer.alloc(64, 9)]])).toXdr('base64')
  const accounts = Array.from({ length: 1_000 }, (_, index) => accountAt(index + 2))
  for (let index = 0; index < EVENTS; index += 1) {
    const ledger = 2 + Math.floor((index / EVENTS) * (LEDGERS - 2))
    const payee = index % 5 === 0 ? LARGE : index % 100 === 1 ? SMALL : (accounts[index % 997] ?? LARGE)
    fake.add(ledger, 'transfer', [accounts[(index * 7) % 1_000] ?? LARGE, payee])
  }
  fake.latestLedger = LEDGERS
}

/** Milliseconds of a page at the end of an account's history. */
async function timePages(db: Database, archive: Archive, account: string): Promise<number> {
  const query = { fromLedger: LEDGERS / 2, toLedger: archive.ingestedThrough, after: undefined, limit: PAGE }
  await readAccountEvents(db, archive, account, query)
  const began = performance.now()
  for (let round = 0; round < ROUNDS; round += 1) await readAccountEvents(db, archive, account, query)
  return (performance.now() - began) / ROUNDS
}

async function bytesPerEvent(db: Database): Promise<number> {
  const size = sql<string>`pg_total_relation_size('archive_events') + pg_total_relation_size('archive_event_accounts')`
  const { rows } = (await db.execute(sql`SELECT ${size} AS bytes`)) as unknown as { rows: { bytes: string }[] }
  return Math.round(Number(rows[0]?.bytes) / EVENTS)
}
