import type { Database } from '#lib/db/connection.ts'
import type { DirectoryContext } from '#lib/directory/context.ts'
import { acceptInvite } from '#lib/directory/contractors/acceptance.ts'
import { inviteToken } from '#lib/directory/contractors/invite-token.ts'
import { inviteContractor } from '#lib/directory/contractors/invites.ts'
import { admitUser, type Employer } from '#lib/directory/users.ts'

export interface SeededInvite {
  employer: Employer
  contractor: string
  email: string
  invitedAt: Date
  acceptedAt: Date | undefined
}

const SECRET = Buffer.alloc(32)

/** A context without a token, so that no address is looked up in the ledger. */
export function offlineContext(db: Database, now: Date): DirectoryContext {
  return {
    db,
    now,
    accounts: {
      network: { server: { getLedgerEntries: () => Promise.reject(new Error('there is no ledger')) } },
      token: undefined,
    },
    settings: { invites: { secret: SECRET, page: '', daily: 0 }, mail: undefined },
  }
}

/** Runs the employer's invite and the contractor's acceptance through the directory, each at its time. */
export function inviteEvents({ employer, contractor, email, invitedAt, acceptedAt }: SeededInvite) {
  const invited = {
    at: invitedAt,
    write: async (db: Database) => {
      await inviteContractor({ ...offlineContext(db, invitedAt), employer }, contractor)
    },
  }
  if (!acceptedAt) return [invited]
  const accepted = {
    at: acceptedAt,
    write: async (db: Database) => {
      const context = offlineContext(db, acceptedAt)
      const user = await admitUser(context, { kind: 'idp', sub: `seed|${email}`, issuer: 'seed', email })
      await acceptInvite({ ...context, user }, inviteToken(SECRET, { contractor, version: 1 }))
    },
  }
  return [invited, accepted]
}
