import type { Database } from '#lib/db/connection.ts'
import { readAccountAuth } from '#lib/stellar/account.ts'
import type { EntryReader } from '#lib/stellar/entries.ts'
import { bodyWith } from '#lib/text/plain-text.ts'
import { mintSession, type SessionSettings, type SignedIn } from '../session.ts'
import type { Sep10Settings } from './challenge.ts'
import { claimChallenge } from './claim.ts'
import { checkClientSignatures, readChallenge } from './verification.ts'

/** The body of POST /auth/sep10/verify. */
export const signedChallenge = bodyWith('transaction', 'the challenge with the wallet’s signature, base64 XDR')

/**
 * Exchanges a signed challenge (base64 XDR) for a session of its account. A challenge can be used once; a refusal does not
 * use it. The session's jti is the challenge's hash.
 * @throws Refusal `challenge-…` for an invalid challenge, `unavailable` while ledger or database cannot be reached
 */
export async function signInWithWallet(
  context: {
    rpc: EntryReader
    sep10: Sep10Settings
    sessions: SessionSettings
    /** called only for a valid challenge, so that an invalid one is refused even without the database */
    database(): Promise<Database>
  },
  transaction: string,
  now: Date,
): Promise<SignedIn> {
  const challenge = readChallenge(context.sep10, transaction, now)
  checkClientSignatures(context.sep10, challenge, await readAccountAuth(context.rpc, challenge.account))
  await claimChallenge(await context.database(), challenge)
  const identity = { kind: 'ledger', sub: challenge.account } as const
  const id = Buffer.from(challenge.hash).toString('hex')
  return { session: await mintSession(context.sessions, { ...identity, id }, now), ...identity }
}
