import { authOf } from '#lib/stellar/account.ts'
import type { AccountReading } from '#lib/stellar/accounts.ts'
import type { InnerTransaction } from './inner-transaction.ts'
import { sponsorRefused } from './refusal-reason.ts'
import { checkSignatures } from './signatures.ts'

/**
 * The payer's own account is read each time, though its master key may have signed: that key can have lost its weight,
 * and simulation looks at no sequence number. What the network would refuse at the door costs nothing, but every such
 * transfer holds its bid until it is dead, and enough of them hold the whole budget.
 * @throws SponsorRefusal
 */
export function checkPayer(inner: InnerTransaction, { account, latestLedger }: AccountReading): void {
  checkSignatures(inner, account ? authOf(inner.source, account) : { exists: false }, latestLedger)
  if (account && inner.envelope.tx.seqNum !== account.seqNum + 1n) {
    throw sponsorRefused('sequence', { asOf: latestLedger })
  }
}
