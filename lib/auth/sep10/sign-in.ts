import { z } from 'zod'
import type { Database } from '#lib/db/connection.ts'
import { readAccountAuth } from '#lib/stellar/account.ts'
import type { EntryReader } from '#lib/stellar/entries.ts'
import { mintSession, type SessionSettings, type SignedIn } from '../session.ts'
import type { Sep10Settings } from './challenge.ts'
import { claimChallenge } from './claim.ts'
import { checkClientSignatures, readChallenge } from './verification.ts'

const required = 'transaction required'

/** The body of POST /auth/sep10/verify. */
export const signedChallenge = z.object(
  {
    transaction: z
      .string(required)
      .min(1, required)
      .meta({ description: 'the challenge with the wallet’s signature, base64 XDR' }),
  },
  required,
)

/**
 * Exchanges a challenge that the wallet has signed, base64 XDR, for a session of its account. A challenge gives one
 * session; a refusal leaves it unused. The session's jti is the hash of the challenge.
 * @throws Refusal `challenge-…` for a bad challenge of any sort, `unavailable` while ledger or database cannot be reached
 */
export async function signInWithWallet(
  given: {
    rpc: EntryReader
    sep10: Sep10Settings
    sessions: SessionSettings
    /** asked for once the challenge is good, so that a bad one is refused while the database is away */
    database(): Promise<Database>
  },
  transaction: string,
  now: Date,
): Promise<SignedIn> {
  const challenge = readChallenge(given.sep10, transaction, now)
  checkClientSignatures(given.sep10, challenge, await readAccountAuth(given.rpc, challenge.account))
  await claimChallenge(await given.database(), challenge)
  const identity = { kind: 'ledger', sub: challenge.account } as const
  const id = Buffer.from(challenge.hash).toString('hex')
  return { session: await mintSession(given.sessions, { ...identity, id }, now), ...identity }
}
