import { ConfigurationError, environment } from '#lib/config/environment.ts'
import { dropAudit, exportAudit } from '#lib/db/audit-export.ts'
import { openStore } from '#lib/db/connection.ts'
import { innermostReason } from '#lib/db/errors.ts'
import { runCommand } from './process/command.ts'
import { print } from './process/output.ts'

const USAGE = `npm run audit -- export --before YYYY-MM --out FILE [--drop]

Writes the audit log's entries from before a month (UTC) to a new file, one JSON object per line, oldest first. With --drop
it then deletes them from the PostgreSQL of DATABASE_URL, which must name the role that owns the table, and records that in
the audit log. The service itself can neither change nor delete an entry.`

/**
 * The minimum age (ms) of an exported entry. The daily limit of mails counts those of the last 24 hours, and transactions
 * that were open at the end of a month have long been committed.
 */
const MIN_AGE_MS = 48 * 60 * 60_000

/** The first moment of a month, by which all entries of the months before it have been written. */
function readMonth(text: string | undefined): Date {
  const month = new Date(`${text}-01T00:00:00Z`)
  if (!/^\d{4}-\d{2}$/.test(text ?? '') || Number.isNaN(month.getTime())) {
    throw new ConfigurationError('--before', 'must be a month, YYYY-MM')
  }
  if (month.getTime() > Date.now() - MIN_AGE_MS) {
    throw new ConfigurationError('--before', 'must be a month that began at least two days ago')
  }
  return month
}

await runCommand({
  usage: USAGE,
  options: { before: { type: 'string' }, out: { type: 'string' }, drop: { type: 'boolean' } },
  explain: (error) => innermostReason(error),
  run: async (given, [command]) => {
    if (command !== 'export') throw new ConfigurationError('command', 'must be export: see npm run audit -- --help')
    const before = readMonth(given.before)
    if (!given.out) throw new ConfigurationError('--out', 'is needed: the file to write')
    const { DATABASE_URL } = environment()
    if (!DATABASE_URL) throw new ConfigurationError('DATABASE_URL', 'is needed')
    const store = openStore({ url: DATABASE_URL, connections: 1 })
    try {
      const db = await store.database()
      const { count, last } = await exportAudit(db, { before, path: given.out })
      print(`${count} entries written to ${given.out}`)
      if (!given.drop || count === 0) return
      const dropped = await dropAudit(db, { before, last, actor: 'command line', now: new Date() })
      print(`${dropped} entries deleted`)
    } finally {
      await store.close()
    }
  },
})
