import type { Database } from '#lib/db/connection.ts'
import { isLagging } from '#lib/stellar/lag.ts'
import { lookUp } from '#lib/stellar/look-up.ts'
import type { Network } from '#lib/stellar/network.ts'
import type { LedgerRecord } from '#lib/submission/ledger-record.ts'
import { readRecord } from '#lib/submission/ledger-record.ts'
import { lastLedgerOf } from '#lib/submission/transfers.ts'
import type { InnerTransaction } from './inner-transaction.ts'
import { checkPayer } from './payer.ts'
import { checkTimeBounds, type Intent } from './policy.ts'
import type { RefusalReason } from './refusal-reason.ts'
import { checkResourceFee, checkResources, simulate } from './simulation.ts'
import type { Sponsor } from './sponsor.ts'

/** What the network showed of a transfer that nothing stands against. */
export interface Verified {
  /** the lowest ledger of the answers: in it, the sequence number was not used yet */
  recordedLedger: number
  /** the ledger of the simulation */
  latestLedger: number
}

/**
 * Checks time, account and simulation. Each of these refusals may only mean that the transaction stands on the ledger
 * already, so the caller looks for it before it repeats them.
 * @throws SponsorRefusal; Refusal `unavailable`
 */
export async function verify(sponsor: Sponsor, inner: InnerTransaction, intent: Intent): Promise<Verified> {
  checkTimeBounds(intent, Math.floor(sponsor.now().getTime() / 1000))
  const reading = await sponsor.submission.readAccount(inner.source)
  checkPayer(inner, reading)
  const { resources, minResourceFee, latestLedger } = await simulate(sponsor.network, inner)
  checkResources(intent.resources, resources)
  checkResourceFee({ fee: intent.resourceFee, resources: intent.resources }, { fee: minResourceFee, resources })
  return { recordedLedger: Math.min(reading.latestLedger, latestLedger), latestLedger }
}

/** The refusals that time, account and simulation give. */
const OF_THE_MOMENT: ReadonlySet<RefusalReason> = new Set([
  'not-yet-valid',
  'no-expiry',
  'expires-too-soon',
  'expires-too-late',
  'bad-signature',
  'too-little-weight',
  'extra-signature',
  'no-account',
  'sequence',
  'excess-instructions',
  'excess-bytes',
  'excess-footprint',
  'too-few-resources',
  'low-resource-fee',
  'excess-resource-fee',
  'would-fail',
])

export const isOfTheMoment = (reason: RefusalReason): boolean => OF_THE_MOMENT.has(reason)

/** One address may stand for several nodes: so often a lagging one is asked again in a row. */
const ASKED_AGAIN = 4

/**
 * What stands on the ledger of a transaction that its client has sent by itself. `absent`: it is no success up to ledger
 * `asOf`, on which a refusal rests. `unsure`: no answer was late enough to tell, and to refuse would call for a second
 * payment.
 * @throws Refusal `unavailable`
 */
export async function findApplied(
  network: Network,
  sponsor: string | null,
  { hashHex: innerHash }: InnerTransaction,
  asOf: number,
): Promise<LedgerRecord | 'absent' | 'unsure'> {
  for (let asked = 1; asked <= ASKED_AGAIN; asked += 1) {
    const found = await lookUp(network, innerHash)
    if (found.status !== 'NOT_FOUND') {
      const record = readRecord(found, { innerHash, sponsor, passphrase: network.passphrase })
      return record.succeeded ? record : 'absent'
    }
    if (found.latestLedger >= asOf) return 'absent'
  }
  return 'unsure'
}

/** Whether an answer as of `ledger` is older than what the account is known to have done. */
export async function isBehind(db: Database, account: string, ledger: number): Promise<boolean> {
  return isLagging(ledger, await lastLedgerOf(db, account))
}
