import type { RefusalReason } from '#lib/refusal/sponsor-refusal.ts'
import { findEnvelopes } from '#lib/transfers/rows.ts'
import { isOfTheMoment } from '#lib/transfers/verification.ts'
import { findContradictions } from '../directory/bookkeeping.ts'
import { findDiscrepancies } from '../transfers/quota-ledger.ts'
import { type Happened, type Pair, statusOf } from './history.ts'

/** No node in the histories lags by this many ledgers. */
const LONG_AGO = 80

/** All contradictions between responses, rows and the ledger after a history. */
export async function findUntruths(pair: Pair, { told, signed, ends }: Happened, sponsor: string): Promise<string[]> {
  const { db } = pair
  const ledger = await pair.readLedger()
  const untruths: string[] = []
  const isApplied = (hash: string) => ledger.get(hash)?.some(({ succeeded }) => succeeded) ?? false

  for (const { status, body, hash, ledger: postedAt } of told) {
    const code = String(body.code)
    const stoodLong = ledger.get(hash)?.some((one) => one.succeeded && one.ledger < postedAt - LONG_AGO)
    if (status === 422 && isOfTheMoment(code as RefusalReason) && stoodLong) {
      untruths.push(`${code} for ${hash}, which stood there long before`)
    }
    if (status >= 500 && code === 'internal') untruths.push(`an undocumented ${status} for ${hash}`)
    if (status === 200) {
      const isThere = ledger.get(hash)?.some((one) => one.succeeded && (one.hash === body.hash || hash === body.hash))
      if (!isThere) untruths.push(`200 for ${hash}, which does not stand there`)
    }
    if (['transfer-expired', 'transfer-failed', 'transfer-replaced'].includes(code) && isApplied(hash)) {
      untruths.push(`${code} for ${hash}, which succeeded`)
    }
    if (
      code === 'transfer-replaced' &&
      body.reason !== 'unknown-transaction' &&
      ![...ledger.values()].flat().some((one) => one.hash === body.hash || isApplied(String(body.hash)))
    ) {
      untruths.push(`replaced by ${body.hash}, which is not there`)
    }
  }

  const transfers = await db.query.transfers.findMany()
  /** for each payout, the payments on the ledger by every transfer that was recorded for it */
  const payments = new Map<string, string[]>()
  for (const transfer of transfers) {
    const envelopes = await findEnvelopes(db, [transfer.id])
    const applied = envelopes.filter(({ innerHash }) => isApplied(innerHash)).map(({ innerHash }) => innerHash)
    if (transfer.payout !== null) {
      payments.set(transfer.payout, [...(payments.get(transfer.payout) ?? []), ...applied])
    }
    if (applied.length > 1) untruths.push(`${applied.length} payments of transfer ${transfer.id}`)
    if (transfer.status === 'open') untruths.push(`transfer ${transfer.id} is open for ever`)
    if (transfer.status === 'succeeded' && transfer.applied !== applied[0])
      untruths.push(`${transfer.id} did not succeed`)
    if ((transfer.status === 'expired' || transfer.status === 'failed') && applied.length > 0) {
      untruths.push(`transfer ${transfer.id} is ${transfer.status}, and was paid`)
    }
    const ours = envelopes.flatMap(({ innerHash }) => ledger.get(innerHash) ?? [])
    const charged = ours.reduce((sum, { feeSource, fee }) => sum + (feeSource === sponsor ? fee : 0n), 0n)
    if (transfer.sponsor === sponsor && (transfer.feeCharged ?? 0n) !== charged) {
      untruths.push(`transfer ${transfer.id} was charged ${charged}, and says ${transfer.feeCharged}`)
    }
  }
  for (const [payout, { length }] of payments) {
    if (length > 1) untruths.push(`payout ${payout} was paid ${length} times`)
  }
  for (const { id, status } of transfers) {
    const seen = ends.get(id)
    if (seen !== undefined && seen !== status) untruths.push(`transfer ${id} was ${seen}, and is ${status}`)
  }
  for (const hash of signed) {
    const transfer = await statusOf(db, hash)
    if (transfer && isApplied(hash) && transfer.status !== 'succeeded')
      untruths.push(`${hash} succeeded, unknown to us`)
  }
  const floats = await db.query.sponsorFloats.findMany()
  if (floats.some(({ held }) => held !== 0n)) untruths.push('the float is held by nothing')
  untruths.push(...(await findDiscrepancies(db)).map((found) => `quota: ${JSON.stringify(found)}`))
  untruths.push(...(await findContradictions(db)).map((found) => `books: ${JSON.stringify(found)}`))
  return untruths
}
