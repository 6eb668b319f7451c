import type { IdempotentRequest } from '#lib/db/idempotency.ts'
import type { InviteSettings } from './contractors/invite-token.ts'
import type { ConfidentialAccounts } from './contractors/registration.ts'
import type { MailSettings } from './mail.ts'
import type { Context, Employer, User } from './users.ts'

/** The context of every verb of the directory. */
export interface DirectoryContext extends Context {
  accounts: ConfidentialAccounts
  /** if the request has an Idempotency-Key: a verb that creates records its outcome */
  once?: IdempotentRequest | undefined
  settings: { invites: InviteSettings; mail: MailSettings | undefined }
}

export interface UserContext extends DirectoryContext {
  user: User
}

export interface EmployerContext extends DirectoryContext {
  employer: Employer
}
