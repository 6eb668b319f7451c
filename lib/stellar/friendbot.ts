import { LedgerError } from './ledger-error.ts'

/** Friendbot responds once its transaction has been applied. */
const PATIENCE_MS = 60_000

/**
 * Has the friendbot of a test network fund an account (G…).
 * @throws LedgerError `unavailable` if it does not
 */
export async function requestFriendbot(friendbotUrl: string, address: string): Promise<void> {
  const url = new URL(friendbotUrl)
  url.searchParams.set('addr', address)
  const answer = await fetch(url, { signal: AbortSignal.timeout(PATIENCE_MS) }).catch((cause: unknown) => {
    throw new LedgerError('unavailable', 'friendbot cannot be reached', { cause })
  })
  if (!answer.ok) throw new LedgerError('unavailable', `friendbot responded with ${answer.status} for ${address}`)
}
