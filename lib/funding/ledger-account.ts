import { and, inArray, isNotNull } from 'drizzle-orm'
import { contractors } from '#drizzle/schema/directory.ts'
import type { Session } from '#lib/auth/session.ts'
import type { Database } from '#lib/db/connection.ts'
import { provenAccounts } from '#lib/directory/me.ts'
import { admitUser } from '#lib/directory/user.ts'
import { Refusal } from '#lib/http/refusal.ts'

/**
 * The account whose balance is the user's: that of a ledger session, else the first wallet that the user has joined, else
 * the address of the contractor record that the user is linked to, the newest that has one.
 * @throws Refusal `account-missing` when there is none
 */
export async function findLedgerAccount(db: Database, session: Session, now: Date): Promise<string> {
  if (session.kind === 'ledger') return session.sub
  const user = await admitUser({ db, now }, session)
  const [joined] = await provenAccounts(db, user)
  if (joined !== undefined) return joined
  const ids = user.records.map(({ id }) => id)
  const rows =
    ids.length === 0
      ? []
      : await db
          .select({ id: contractors.id, address: contractors.address })
          .from(contractors)
          .where(and(inArray(contractors.id, ids), isNotNull(contractors.address)))
  const [newest] = rows.sort((one, other) => ids.indexOf(one.id) - ids.indexOf(other.id))
  if (!newest?.address) throw new Refusal('account-missing', 'no ledger account')
  return newest.address
}
