import { LedgerError } from './ledger-error.ts'

/** Friendbot answers when its transaction is on the ledger. */
const PATIENCE_MS = 60_000

/**
 * Asks the friendbot of a test network for XLM for an account (G…).
 * @throws LedgerError `unavailable` if it gives none
 */
export async function requestFriendbot(friendbotUrl: string, address: string): Promise<void> {
  const url = new URL(friendbotUrl)
  url.searchParams.set('addr', address)
  const answer = await fetch(url, { signal: AbortSignal.timeout(PATIENCE_MS) }).catch((cause: unknown) => {
    throw new LedgerError('unavailable', 'friendbot cannot be reached', { cause })
  })
  if (!answer.ok) throw new LedgerError('unavailable', `friendbot answered ${answer.status} for ${address}`)
}
