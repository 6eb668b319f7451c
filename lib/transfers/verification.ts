import type { Database } from '#lib/db/connection.ts'
import { SponsorRefusal } from '#lib/refusal/sponsor-refusal.ts'
import { isLagging } from '#lib/stellar/view.ts'
import { checkLiveUntil } from './call-table.ts'
import type { LedgerRecord } from './decide.ts'
import { closedAfter, type Doubt } from './doubt.ts'
import { lookUpOwnTransaction } from './look-up.ts'
import { checkPayer } from './payer.ts'
import { checkPolicy, checkTimeBounds } from './policy.ts'
import type { Proposal } from './record.ts'
import { findTransferOfHash, lastLedgerOf, type RecordedTransfer } from './rows.ts'
import { checkArchived, checkResourceFee, checkResources, simulate } from './simulation.ts'
import type { Sponsor } from './sponsor.ts'

/** The transfer of a request. `isNew`: this very request has recorded the envelope. */
export interface Sponsored {
  recorded: RecordedTransfer
  isNew: boolean
}

/** What the ledger shows of a transaction: it may be recorded, the client has submitted it, or another request has recorded it. */
export type Verified = { recordedLedger: number; latestLedger: number } | { applied: LedgerRecord } | Sponsored

/**
 * Verifies a transaction by the policy and against the ledger. Resolves to a `doubt` if a response is too old to rely on.
 * Before any refusal, the transaction is looked up: what the ledger has applied is not refused.
 */
export async function verify(db: Database, sponsor: Sponsor, proposal: Proposal): Promise<Verified | Doubt> {
  const { network, tracker, keypair, rules, now } = sponsor
  const { inner, intent, terms, checked, signal } = proposal
  const isBehind = async (ledger: number) => isLagging(ledger, await lastLedgerOf(db, inner.source))
  /** the ledger of the response that the last checks were based on */
  let checkedAt: number | undefined
  try {
    checkPolicy(inner, intent, rules)
    checkTimeBounds(intent, Math.floor(now().getTime() / 1000))
    // Needed later, it shares the call.
    sponsor.readFloat(tracker.view.latestLedger()).catch(() => undefined)
    const reading = checked?.account ?? (await tracker.readAccount(inner.source))
    checkPayer(inner, reading)
    const needed = checked?.simulation ?? (await simulate(network, inner))
    const { latestLedger } = needed
    checkedAt = latestLedger
    checkLiveUntil(intent.liveUntilLedger, terms.calls?.marginLedgers ?? 0, latestLedger)
    checkResources(intent.resources, needed.resources)
    await checkArchived(network, intent, needed)
    checkResourceFee(
      { fee: intent.resourceFee, resources: intent.resources },
      { fee: needed.minResourceFee, resources: needed.resources },
    )
    const recordedLedger = Math.min(reading.latestLedger, latestLedger)
    return (await isBehind(recordedLedger)) ? { doubt: undefined } : { recordedLedger, latestLedger }
  } catch (error) {
    if (!(error instanceof SponsorRefusal)) throw error
    // The same transaction, posted twice at once, looks stale to the slower request once the faster one was applied.
    const meanwhile = await findTransferOfHash(db, inner.hashHex)
    if (meanwhile) return { recorded: meanwhile, isNew: false }
    // A refusal based on the clock names no ledger, so the transaction must be absent from the latest one.
    const asOf = error.asOf ?? checkedAt ?? (await tracker.readAccount(inner.source)).latestLedger
    const since = closedAfter(error.reason, { now: now().getTime(), arrivedAt: proposal.now.getTime() })
    const own = await lookUpOwnTransaction(
      { network },
      { innerHash: inner.hashHex, sponsor: keypair.publicKey() },
      { asOf, isPresent: (closedAt) => closedAt > since },
    )
    // After that lookup, the latest known ledger is the network's actual one, even if the network was reset.
    const isStale = asOf < tracker.view.latestLedger() || (await isBehind(asOf))
    if (own === 'unsure' || (own === 'absent' && isStale)) return { doubt: error }
    if (own === 'absent') throw error
    signal?.throwIfAborted()
    return { applied: own }
  }
}
