import { Client } from 'pg'
import { disposable } from '../support/disposable.ts'
import type { RelayService, Resumption } from './relay-service.ts'

const TABLES = [
  'batches',
  'payouts',
  'relay_jobs',
  'relay_lines',
  'relay_channels',
  'payment_stops',
  'transfers',
  'envelopes',
  'quotas',
  'sponsor_floats',
  'archive_streams',
  'archive_ranges',
  'archive_final_ranges',
  'archive_events',
  'archive_event_accounts',
  'archive_payloads',
]

/** Puts the rows of a backup back. Resolves to a function that waits until payments go on again after the next stop. */
export type Restore = () => Promise<() => Promise<Resumption>>

/** Backs up every table that a relay or the archive writes, and restores it. */
export async function openBackups({ database, beforeStop }: Pick<RelayService, 'database' | 'beforeStop'>) {
  const connection = new Client({ connectionString: database.url })
  await connection.connect()
  return disposable({
    connection,
    backUp: async (): Promise<Restore> => {
      await connection.query('DROP SCHEMA IF EXISTS backup CASCADE; CREATE SCHEMA backup')
      for (const table of TABLES) await connection.query(`CREATE TABLE backup.${table} AS TABLE ${table}`)
      return async () => {
        await connection.query('BEGIN')
        await connection.query('SET LOCAL session_replication_role = replica')
        for (const table of TABLES) {
          await connection.query(`DELETE FROM ${table}`)
          await connection.query(`INSERT INTO ${table} OVERRIDING SYSTEM VALUE SELECT * FROM backup.${table}`)
        }
        await connection.query('COMMIT')
        return await beforeStop()
      }
    },
    close: () => connection.end(),
  })
}
