import type { Database } from '#lib/db/connection.ts'
import { acceptInvite } from '#lib/directory/invites/acceptance.ts'
import { inviteContractor } from '#lib/directory/invites/invites.ts'
import { inviteToken } from '#lib/directory/invites/token.ts'
import { admitUser, type Employer } from '#lib/directory/user.ts'

/** An invite of the seed, which its contractor may have accepted. */
export interface SeededInvite {
  employer: Employer
  contractor: string
  email: string
  invitedAt: Date
  acceptedAt: Date | undefined
}

const SETTINGS = { invites: { secret: Buffer.alloc(32), page: '', daily: 0 }, mail: undefined }

/** No token is configured here, so that no address is looked up on a ledger. */
const ACCOUNTS = {
  network: { server: { getLedgerEntries: () => Promise.reject(new Error('no ledger')) } },
  token: undefined,
}

/** The service's work for an invite: the employer's inviting and the contractor's accepting, each at its time. */
export function inviteEvents({ employer, contractor, email, invitedAt, acceptedAt }: SeededInvite) {
  const invited = {
    at: invitedAt,
    write: async (db: Database) => {
      await inviteContractor({ db, employer, now: invitedAt, settings: SETTINGS }, contractor)
    },
  }
  if (!acceptedAt) return [invited]
  const accepted = {
    at: acceptedAt,
    write: async (db: Database) => {
      const user = await admitUser(
        { db, now: acceptedAt },
        { kind: 'idp', sub: `seed|${email}`, issuer: 'seed', email },
      )
      const given = { db, user, now: acceptedAt, accounts: ACCOUNTS, settings: SETTINGS }
      await acceptInvite(given, inviteToken(SETTINGS.invites.secret, { contractor, version: 1 }))
    },
  }
  return [invited, accepted]
}
