import type { Keypair } from '@stellar/stellar-sdk'
import { z } from 'zod'
import type { Session } from '#lib/auth/session.ts'
import type { Database } from '#lib/db.ts'
import { recordAudit } from '#lib/directory/audit.ts'
import { organisationOfWallet } from '#lib/directory/payout-claims.ts'
import { readAccountAuth } from '#lib/ledger/account.ts'
import type { Network } from '#lib/ledger/network.ts'
import { describeFailure, log } from '#lib/log.ts'
import { Refusal } from '#lib/refusal.ts'
import { wrapInFeeBump } from './fee-bump.ts'
import { decodeInner, type InnerTransaction } from './inner-transaction.ts'
import type { Ending } from './pending.ts'
import { readIntent, type SponsorRules } from './policy.ts'
import { type QuotaLimits, quotaDay } from './quota.ts'
import { type RefusalReason, SponsorRefusal } from './refusal-reason.ts'
import type { Settlement } from './settlement.ts'
import { checkSignatures, isSignedByMasterAlone } from './signatures.ts'
import { checkResources, simulate } from './simulation.ts'
import { findTransfer, type RecordingTerms, recordTransfer, type TransferRecord } from './transfer-record.ts'

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

/** What a client sends. */
export const transferRequest = z.object(
  {
    signedXDR: z
      .string('signedXDR required')
      .min(1, 'signedXDR required')
      .meta({ description: 'the signed inner transaction, base64 XDR' }),
    payoutId: z.string('payoutId must be a string').optional().meta({
      description: 'the payout that the transfer pays; without it, the service finds one that fits',
      'x-extension': true,
    }),
  },
  'signedXDR required',
)
export type TransferRequest = z.output<typeof transferRequest>

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
  { signedXDR, payoutId }: TransferRequest,
): Promise<TransferResult> {
  const inner = decodeInner(signedXDR, sponsor.network.passphrase)
  if (inner.source !== payer) {
    throw new Refusal('forbidden', 'transaction source is not your session account')
  }
  const { rules } = sponsor
  return presentEnding(await pay(db, sponsor, inner, { rules, ...(payoutId !== undefined && { payoutId }) }))
}

/** A channel account of the relay, which pays an item of somebody's batch job. */
export interface ChannelCaller {
  /** the payer, G-address */
  channel: string
  /** whose quota the transfer counts against */
  quotaAccount: string
  /** Runs in the SQL transaction that records the transfer, and throws if it is no longer the one to pay the item. */
  confirm(tx: Database): Promise<void>
}

/**
 * The same for the relay's own transfers, under the same policy; only the channel itself leaves the set of addresses
 * that may not pay. The caller learns how it ended, and may ask again with the same signed transaction.
 * @throws Refusal `malformed`, `forbidden`, `refused`, `unavailable`
 */
export async function sponsorChannel(
  db: Database,
  sponsor: Sponsor,
  { channel, quotaAccount, confirm }: ChannelCaller,
  signedXDR: string,
): Promise<Ending> {
  const inner = decodeInner(signedXDR, sponsor.network.passphrase)
  if (inner.source !== channel) throw new Refusal('forbidden', 'transaction source is not the channel')
  const ownAddresses = new Set([...sponsor.rules.ownAddresses].filter((address) => address !== channel))
  return await pay(db, sponsor, inner, { rules: { ...sponsor.rules, ownAddresses }, quotaAccount, confirm })
}

/** On what terms the sponsor pays: they differ between a client's transfers and the relay's. */
interface Terms extends RecordingTerms {
  rules: SponsorRules
}

async function pay(db: Database, sponsor: Sponsor, inner: InnerTransaction, terms: Terms): Promise<Ending> {
  const earlier = await findTransfer(db, inner.hashHex)
  const accepted = earlier ? { record: earlier, isNew: false } : await accept(db, sponsor, inner, terms)
  return await sponsor.settlement.follow(accepted.record, { isNew: accepted.isNew, patience: sponsor.patience })
}

/** Everything that must hold before the sponsor owes anything, then the record that makes it owe. */
async function accept(
  db: Database,
  sponsor: Sponsor,
  inner: InnerTransaction,
  { rules, ...recording }: Terms,
): Promise<{ record: TransferRecord; isNew: boolean }> {
  try {
    const now = sponsor.now()
    const intent = readIntent(inner, rules, Math.floor(now.getTime() / 1000))
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
      createdAt: now,
    }
    return await recordTransfer(db, transfer, sponsor.limits, available, recording)
  } catch (error) {
    if (!(error instanceof SponsorRefusal)) throw error
    // The same transaction, sent twice at once, looks stale to the slower request as soon as the faster has applied.
    const meanwhile = await findTransfer(db, inner.hashHex)
    if (meanwhile) return { record: meanwhile, isNew: false }
    await noteRefusal(db, inner, error.reason, sponsor.now())
    throw error
  }
}

/** Into the log, and into the audit log if that can be written just now: the refusal stands either way. */
async function noteRefusal(db: Database, inner: InnerTransaction, reason: RefusalReason, now: Date): Promise<void> {
  const { hashHex: hash, source: account } = inner
  log('info', 'sponsorship refused', { hash, account, reason })
  try {
    await recordAudit(db, now, {
      organisation: (await organisationOfWallet(db, account)) ?? undefined,
      actor: { kind: 'ledger', sub: account },
      action: 'transfer.refused',
      subject: { kind: 'transfer', id: hash },
      detail: { reason },
    })
  } catch (error) {
    log('error', 'audit', { hash, failure: describeFailure(error) })
  }
}

function presentEnding(ending: Ending): TransferResult {
  if (typeof ending === 'object' && ending.status === 'success' && ending.ledgerHash) {
    return { hash: ending.ledgerHash, status: 'SUCCESS' }
  }
  throw new Refusal('failed', 'transfer failed')
}
