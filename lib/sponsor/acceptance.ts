import { recordAudit } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { organisationOfWallet } from '#lib/directory/payouts/claims.ts'
import { Refusal } from '#lib/http/refusal.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { wrapInFeeBump } from './fee-bump.ts'
import type { InnerTransaction } from './inner-transaction.ts'
import { checkPayer } from './payer.ts'
import { readIntent } from './policy.ts'
import { quotaDay } from './quota.ts'
import { type RefusalReason, SponsorRefusal } from './refusal-reason.ts'
import { checkResources, simulate } from './simulation.ts'
import type { Sponsor } from './sponsor.ts'
import {
  findTransfer,
  lastLedgerOf,
  type RecordingTerms,
  recordTransfer,
  type TransferRecord,
} from './transfer-record.ts'

/** On what terms the sponsor pays: they differ between a client's transfers and the relay's. */
export interface Terms extends RecordingTerms {
  /** the one address of the service's own that may pay */
  channel?: string
}

/** How long a refusal is doubted because the RPC is behind what the payer has already seen settled. */
const LAG_MS = 5_000

/** Refuses only on what the network says now: one address may stand for several nodes, and some lag. */
export async function accept(
  db: Database,
  sponsor: Sponsor,
  inner: InnerTransaction,
  terms: Terms,
): Promise<{ record: TransferRecord; isNew: boolean }> {
  const { pollMs } = sponsor.network
  for (let waited = 0; ; waited += pollMs) {
    try {
      return await check(db, sponsor, inner, terms)
    } catch (error) {
      if (!(error instanceof SponsorRefusal)) throw error
      // The same transaction, sent twice at once, looks stale to the slower request as soon as the faster has applied.
      const meanwhile = await findTransfer(db, inner.hashHex)
      if (meanwhile) return { record: meanwhile, isNew: false }
      const isBehind = error.asOf !== undefined && error.asOf < (await lastLedgerOf(db, inner.source))
      if (!isBehind) {
        await noteRefusal(db, inner, error.reason, sponsor.now())
        throw error
      }
      if (waited >= LAG_MS) throw new Refusal('unavailable', 'the ledger has fallen behind', { cause: error })
      await new Promise((resolve) => setTimeout(resolve, pollMs))
    }
  }
}

/** Everything that must hold before the sponsor owes anything, then the record that makes it owe. */
async function check(
  db: Database,
  sponsor: Sponsor,
  inner: InnerTransaction,
  { channel, ...recording }: Terms,
): Promise<{ record: TransferRecord; isNew: boolean }> {
  const { network } = sponsor
  const now = sponsor.now()
  const ownAddresses = new Set(await sponsor.ownAddresses(db))
  if (channel) ownAddresses.delete(channel)
  const intent = readIntent(inner, { ...sponsor.rules, ownAddresses }, Math.floor(now.getTime() / 1000))
  checkPayer(inner, await sponsor.readAccount(inner.source))
  const { resources, latestLedger } = await simulate(network, inner)
  checkResources(intent.resources, resources)
  const available = await sponsor.readFloat(latestLedger)
  const bump = wrapInFeeBump(inner, sponsor.keypair, network.passphrase)
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
