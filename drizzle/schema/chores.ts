import { bigint, pgTable, text } from 'drizzle-orm/pg-core'
import { instant } from './columns.ts'

/** Periodic work that one process does for all: the first to claim the chore's row once its interval is over. */
export const chores = pgTable('chores', {
  name: text('name').primaryKey(),
  /** when it last began, by the database's clock */
  begunAt: instant('begun_at').notNull(),
  /** where the next round continues, if the chore reads a table in chunks: the sequence of the last row read */
  after: bigint('after', { mode: 'number' }).notNull().default(0),
})
