import type { Keypair } from '@stellar/stellar-sdk'
import type { Session } from '#lib/auth/session.ts'
import type { Database } from '#lib/db.ts'
import { readAccountAuth } from '#lib/ledger/account.ts'
import type { Network } from '#lib/ledger/network.ts'
import { log } from '#lib/log.ts'
import { Refusal } from '#lib/refusal.ts'
import { wrapInFeeBump } from './fee-bump.ts'
import { decodeInner, type InnerTransaction } from './inner-transaction.ts'
import { readIntent, type SponsorRules } from './policy.ts'
import { type QuotaLimits, quotaDay } from './quota.ts'
import { SponsorRefusal } from './refusal-reason.ts'
import type { Ending, Settlement } from './settlement.ts'
import { checkSignatures, isSignedByMasterAlone } from './signatures.ts'
import { checkResources, simulate } from './simulation.ts'
import { findTransfer, recordTransfer, type TransferRecord } from './transfer-record.ts'

/** The fee sponsor of a process: its key, its rules, and what it works with. */
export interface Sponsor {
  keypair: Keypair
  rules: SponsorRules
  limits: QuotaLimits
  /** how long a request waits for the ledger, in milliseconds */
  patience: number
  network: Network
  settlement: Settlement
  /** stroops that the sponsor may spend, as of at least the given ledger */
  readFloat: (ledger: number) => Promise<bigint>
  /** the same, asked of the ledger now */
  readBalance: () => Promise<bigint>
  now: () => Date
}

/** `hash` (64 hex digits) stands on the ledger as a success. */
export interface TransferResult {
  hash: string
  status: 'SUCCESS'
}

/**
 * Whose transfer this is, before a body is read: only the holder of a ledger account may be sponsored.
 * @throws Refusal `not-wired`
 */
export function requirePayer(session: Session): string {
  if (session.kind === 'ledger') return session.sub
  throw new Refusal('not-wired', 'transfers need a wallet session')
}

/** @throws Refusal `not-wired` when the service has no sponsor key */
export function requireSponsor(sponsor: Sponsor | undefined): Sponsor {
  if (!sponsor) throw new Refusal('not-wired', 'no fee sponsor is configured')
  return sponsor
}

/**
 * Pays the network fee of `signedXDR`, the confidential transfer that `payer` has built and signed, and waits for it.
 *
 * The same signed transaction is the same request, however often and wherever it arrives: it is recorded, and paid
 * for, once, and everybody gets what the ledger says.
 * @throws Refusal `malformed`, `forbidden`, `refused`; `failed` when it failed, died, or is still open: then the same
 *   signed transaction may safely be sent again
 */
export async function sponsorTransfer(
  db: Database,
  sponsor: Sponsor,
  payer: string,
  signedXDR: string,
): Promise<TransferResult> {
  const inner = decodeInner(signedXDR, sponsor.network.passphrase)
  if (inner.source !== payer) {
    throw new Refusal('forbidden', 'transaction source is not your session account')
  }
  const earlier = await findTransfer(db, inner.hashHex)
  const accepted = earlier ? { record: earlier, isNew: false } : await accept(db, sponsor, inner)
  const ending = await sponsor.settlement.follow(accepted.record, {
    isNew: accepted.isNew,
    patience: sponsor.patience,
  })
  return presentEnding(ending)
}

/** Everything that must hold before the sponsor owes anything, then the record that makes it owe. */
async function accept(
  db: Database,
  sponsor: Sponsor,
  inner: InnerTransaction,
): Promise<{ record: TransferRecord; isNew: boolean }> {
  try {
    const now = sponsor.now()
    const intent = readIntent(inner, sponsor.rules, Math.floor(now.getTime() / 1000))
    if (!isSignedByMasterAlone(inner)) {
      checkSignatures(inner, await readAccountAuth(sponsor.network.server, inner.source))
    }
    const { resources, latestLedger } = await simulate(sponsor.network, inner)
    checkResources(intent.resources, resources)
    const available = await sponsor.readFloat(latestLedger)
    const bump = wrapInFeeBump(inner, sponsor.keypair, sponsor.network.passphrase)
    const transfer = {
      innerHash: inner.hashHex,
      outerHash: bump.hash,
      account: intent.from,
      recipient: intent.to,
      sponsor: sponsor.keypair.publicKey(),
      envelope: bump.envelope,
      bid: bump.bid,
      maxTime: intent.maxTime,
      quotaDay: quotaDay(now),
      sinceLedger: latestLedger,
    }
    return await recordTransfer(db, transfer, sponsor.limits, available)
  } catch (error) {
    if (!(error instanceof SponsorRefusal)) throw error
    // The same transaction, sent twice at once, looks stale to the slower request as soon as the faster has applied.
    const meanwhile = await findTransfer(db, inner.hashHex)
    if (meanwhile) return { record: meanwhile, isNew: false }
    log('info', 'sponsorship refused', { hash: inner.hashHex, account: inner.source, reason: error.reason })
    throw error
  }
}

function presentEnding(ending: Ending): TransferResult {
  if (typeof ending === 'object' && ending.status === 'success' && ending.ledgerHash) {
    return { hash: ending.ledgerHash, status: 'SUCCESS' }
  }
  throw new Refusal('failed', 'transfer failed')
}
