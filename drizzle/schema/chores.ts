import { bigint, pgTable, text } from 'drizzle-orm/pg-core'
import { instant } from './columns.ts'

/** The periodic work that one process does for all: the first one to claim the chore's row once its interval is over. */
export const chores = pgTable('chores', {
  name: text('name').primaryKey(),
  /** when it was last begun, by the database's clock */
  begunAt: instant('begun_at').notNull(),
  /** where the next round goes on, if the chore reads a table in parts: the sequence of the last row that it has read */
  after: bigint('after', { mode: 'number' }).notNull().default(0),
})
