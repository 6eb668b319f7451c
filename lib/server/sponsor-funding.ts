import { setTimeout } from 'node:timers/promises'
import { describeFailure, log } from '#lib/observability/log.ts'
import { requestFriendbot } from '#lib/stellar/friendbot.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import type { Sponsor } from '#lib/transfers/sponsor.ts'

/** How often the embedded ledger is asked at a start. It runs in this process, so it answers once others have had a turn. */
const ATTEMPTS = 20
const PAUSE_MS = 500

/**
 * The sponsor of an embedded ledger, whose account is funded while the service already answers, since that takes a ledger
 * or two. Reading the sponsor's balance waits for it.
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
 * Has the embedded ledger's friendbot fund the sponsor's account when it is empty. On a busy machine the ledger, which
 * starts in this process, may answer too late at first, so it is asked again.
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
