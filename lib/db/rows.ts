import { perProcess } from '#lib/observability/per-process.ts'
import { inLine, openLine } from '#lib/turns/line.ts'
import type { Database } from './connection.ts'
import { readOnly } from './read-only.ts'

/**
 * Reads many rows. Only a few such queries run concurrently and the others wait, so none may be part of a transaction, which
 * would occupy a connection in the meantime. The owners of rows take turns.
 */
export const readRows = <Rows>(
  db: Database,
  owner: string | undefined,
  read: (reader: Database) => Promise<Rows>,
): Promise<Rows> => inLine(listsLine(), owner, () => read(readOnly(db)))

/**
 * The maximum number of concurrent queries. Each uses a connection, and decoding its rows blocks the event loop for
 * milliseconds. Small requests need both, however many lists are requested.
 */
const MAX_AT_ONCE = 3

const listsLine = () => perProcess('lists', () => openLine({ atOnce: MAX_AT_ONCE }))
