import { PGlite } from '@electric-sql/pglite'
import { sql } from 'drizzle-orm'
import { Client, Pool } from 'pg'
import type { Database } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'

const CHANNEL = 'payroll_lines'

/** Wakes the relays once the SQL transaction that has written lines commits. */
export const wakeRelays = (tx: Database) => tx.execute(sql`select pg_notify(${CHANNEL}, '')`)

type Listening = { close(): Promise<void> }

/**
 * Calls `onLines` when lines were written, and whenever some may have been missed: LISTEN in a session of PostgreSQL, or in the
 * process of PGlite. Undefined for a database behind a pooler, where no session lasts: relays poll there.
 */
export async function listenForLines(db: Database, onLines: () => void): Promise<Listening | undefined> {
  const client = '$client' in db ? db.$client : undefined
  if (client instanceof PGlite) return { close: await client.listen(CHANNEL, onLines) }
  const url = client instanceof Pool ? client.options.connectionString : undefined
  return url === undefined ? undefined : await listenInSession(url, onLines)
}

const RETRY_MS = 2_000
/** Between two checks of the session (ms): a middlebox may drop it, a pooler may hand it to another client. */
const CHECK_MS = 15_000

/** Listens in a separate database session, and reconnects when it is lost; until then, relays poll. */
async function listenInSession(url: string, onLines: () => void): Promise<Listening> {
  let session: Client | undefined
  let timer: NodeJS.Timeout | undefined
  let closed = false

  async function connect(): Promise<void> {
    const limits = { keepAlive: true, connectionTimeoutMillis: 5_000, query_timeout: 5_000 }
    const next = new Client({ connectionString: url, ...limits })
    session = next
    next.on('error', (error) => lose(next, error))
    next.on('end', () => lose(next, new Error('the session ended')))
    next.on('notification', onLines)
    try {
      await next.connect()
      await next.query(`LISTEN ${CHANNEL}`)
      onLines()
      check(next)
    } catch (error) {
      lose(next, error)
    }
  }

  function check(current: Client): void {
    if (closed || session !== current) return
    const listening = 'SELECT 1 FROM pg_listening_channels() AS channel WHERE channel = $1'
    timer = setTimeout(async () => {
      try {
        const { rowCount } = await current.query(listening, [CHANNEL])
        if (rowCount !== 1) throw new Error('the session no longer listens')
        check(current)
      } catch (error) {
        lose(current, error)
      }
    }, CHECK_MS)
  }

  function lose(lost: Client, error: unknown): void {
    if (closed || session !== lost) return
    log('info', 'relay', { failure: `wake-up: ${describeFailure(error)}` })
    session = undefined
    lost.end().catch(() => undefined)
    clearTimeout(timer)
    timer = setTimeout(() => void connect(), RETRY_MS)
  }

  await connect()
  return {
    close: async () => {
      closed = true
      clearTimeout(timer)
      await session?.end().catch(() => undefined)
    },
  }
}
