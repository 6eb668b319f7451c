import type { Database } from '#lib/db/connection.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { readCheckpoint } from './checkpoint.ts'
import { type Archive, openArchive, readAccountEvents } from './history.ts'

/** Events per query. */
const PAGE = 1_000

/**
 * Opens the archive in the service's own database, in the form in which the wallet reads archives. Ingests first if it
 * ends too early. Its functions throw LedgerError `unavailable` while another process ingests.
 */
export function openLocalArchive(context: {
  database(): Promise<Database>
  token: string
  /** ingests missing ledgers */
  ingest(): Promise<unknown>
}) {
  const { token } = context
  let ingesting: Promise<unknown> | undefined

  /** Readers that wait for ledgers at the same time share a round. */
  async function ingest(): Promise<void> {
    ingesting ??= context.ingest().finally(() => {
      ingesting = undefined
    })
    await ingesting
  }

  async function open(throughLedger: number) {
    const db = await context.database()
    const isEnough = (archive?: Archive) => archive !== undefined && archive.ingestedThrough >= throughLedger
    let archive = await openArchive(db, token)
    // The round in progress may have begun before this ledger closed.
    for (let rounds = ingesting ? 2 : 1; rounds > 0 && !isEnough(archive); rounds -= 1) {
      await ingest()
      archive = await openArchive(db, token)
    }
    if (archive && !isEnough(archive)) throw new LedgerError('unavailable', 'the archive of the service is catching up')
    return { db, archive }
  }

  return {
    name: 'the archive of the service',
    /** Resolves once it includes this ledger. */
    reach: async (ledger: number): Promise<void> => {
      const { archive } = await open(ledger)
      if (!archive) throw new LedgerError('unavailable', 'the archive of the service has no page yet')
    },
    findStart: async (account: string, atLedger: number): Promise<number | undefined> => {
      const { db, archive } = await open(atLedger)
      const checkpoint = archive && (await readCheckpoint(db, archive, account, atLedger))
      return checkpoint?.anchor?.ledger_seq
    },
    readEvents: async (account: string, fromLedger: number | undefined, toLedger: number) => {
      const { db, archive } = await open(toLedger)
      if (!archive) return { events: [], complete: false }
      const range = { fromLedger: fromLedger ?? Math.min(archive.firstLedger, toLedger), toLedger, limit: PAGE }
      const events: Awaited<ReturnType<typeof readAccountEvents>>['events'] = []
      for (let after: string | undefined; ; ) {
        const page = await readAccountEvents(db, archive, account, { ...range, after })
        events.push(...page.events)
        if (page.cursor === null) return { events, complete: page.complete }
        after = page.cursor
      }
    },
  }
}
