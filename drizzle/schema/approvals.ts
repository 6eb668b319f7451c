import { pgTable, text, uuid } from 'drizzle-orm/pg-core'
import { instant } from './columns.ts'
import { batches } from './directory.ts'

/**
 * The signatures on a run that has not started: it starts once their signers' weights reach the threshold of the account that pays.
 * Weights are never stored. They are read from the ledger whenever they matter.
 */
export const runApprovals = pgTable('run_approvals', {
  batch: uuid('batch')
    .primaryKey()
    .references(() => batches.id, { onDelete: 'cascade' }),
  /** the account that pays, G… */
  account: text('account').notNull(),
  /** what was signed; if it differs from what would be signed now, the signatures are void */
  manifest: text('manifest').notNull(),
  /** base64 */
  signatures: text('signatures').array().notNull(),
  /** G…, of each signature; for display only */
  signers: text('signers').array().notNull(),
  updatedAt: instant('updated_at').notNull(),
})
