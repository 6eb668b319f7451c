import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { constants, zstdDecompressSync } from 'node:zlib'
import { PGlite } from '@electric-sql/pglite'
import { pg_trgm } from '@electric-sql/pglite/contrib/pg_trgm'
import { Client } from 'pg'
import { schemaOf } from './rows.ts'
import type { Unfinished } from './story.ts'

const ROOT = 'tests/releases'

/** The releases whose data is kept, oldest first. */
export const RELEASES = globSync(`${ROOT}/*.*.*/`)
  .map((folder) => basename(folder))
  .toSorted(new Intl.Collator('en', { numeric: true }).compare)

export const readUnfinished = (version: string): Unfinished =>
  JSON.parse(readFileSync(`${ROOT}/${version}/unfinished.json`, 'utf8'))

const unpack = (packed: Uint8Array) => zstdDecompressSync(packed, { params: { [constants.ZSTD_d_windowLogMax]: 27 } })

/** Puts the keys and the embedded ledger of a release into a DATA_DIR. */
export function unpackLedger(version: string, directory: string): void {
  const read = (name: string) => readFileSync(`${ROOT}/${version}/${name}`)
  mkdirSync(join(directory, 'ledger'), { recursive: true })
  writeFileSync(join(directory, 'keys.json'), read('keys.json'), { mode: 0o600 })
  writeFileSync(join(directory, 'ledger/network.json'), read('network.json'))
  writeFileSync(join(directory, 'ledger/ledger.sqlite'), unpack(read('ledger.sqlite.zst')))
}

/** Puts the embedded database of a release into a DATA_DIR. */
export async function unpackDatabase(version: string, directory: string): Promise<void> {
  const packed = new Blob([unpack(readFileSync(`${ROOT}/${version}/database.tar.zst`))], { type: 'application/x-tar' })
  const dataDir = join(directory, 'database')
  const database = await PGlite.create({ dataDir, loadDataDir: packed, extensions: { pg_trgm } })
  await database.close()
}

const EMPTY = `SET session_replication_role = replica;
  DO $$ BEGIN EXECUTE (SELECT 'TRUNCATE ' || string_agg(format('%I', tablename), ', ') FROM pg_tables WHERE schemaname = 'public'); END $$;`

/** Fills an empty PostgreSQL database with the tables and rows of a release. */
export async function restoreRows(version: string, url: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(schemaOf(version))
    await client.query(`CREATE TABLE confidential_payroll_migrations
      (id serial PRIMARY KEY, hash text NOT NULL, created_at bigint)`)
    // The rows of the dump, and none that the migrations have inserted.
    await client.query(EMPTY)
    await client.query(unpack(readFileSync(`${ROOT}/${version}/rows.sql.zst`)).toString())
  } finally {
    await client.end()
  }
}
