import { setTimeout } from 'node:timers/promises'
import { describeFailure, log } from '#lib/observability/log.ts'
import { requestFriendbot } from '#lib/stellar/friendbot.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import type { Sponsor } from '#lib/transfers/sponsor.ts'

/**
 * How often to poll the embedded ledger at startup. It runs in this process, so it can respond only between other work.
 */
const ATTEMPTS = 20
const PAUSE_MS = 500

/**
 * The sponsor of an embedded ledger. Its account is funded after the service has started, since funding takes a ledger or
 * two. Reads of the sponsor's balance wait for it.
 */
export function fundMeanwhile(sponsor: Sponsor, friendbotUrl: string): Sponsor {
  const funded = fundSponsor(sponsor, friendbotUrl).catch((error: unknown) => {
    log('error', 'sponsor', { problem: 'the account cannot be funded', failure: describeFailure(error) })
  })
  return {
    ...sponsor,
    readFloat: (ledger) => funded.then(() => sponsor.readFloat(ledger)),
    readBalance: () => funded.then(() => sponsor.readBalance()),
  }
}

/**
 * Has the embedded ledger's friendbot fund the sponsor's account if it is empty. On a busy machine the ledger, which
 * starts in this process, may be slow to respond at first, so this retries.
 */
export async function fundSponsor(
  sponsor: Pick<Sponsor, 'readBalance' | 'keypair'>,
  friendbotUrl: string,
  pauseMs = PAUSE_MS,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      if ((await sponsor.readBalance()) > 0n) return
      return await requestFriendbot(friendbotUrl, sponsor.keypair.publicKey())
    } catch (error) {
      const isLate = error instanceof LedgerError && error.code === 'unavailable'
      if (!isLate || attempt === ATTEMPTS) throw error
      await setTimeout(pauseMs)
    }
  }
}
