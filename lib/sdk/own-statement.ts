import { type AccountStatement, readAccountStatement } from '#lib/disclosure/account-statement.ts'
import type { AnyHolder } from '#lib/wallet/keys.ts'
import type { DeploymentWithHistory } from './own-payments.ts'

/**
 * Every payment that an account has received and sent, with its amount and the balance after it, from the ledger and the archives
 * alone. Decrypting takes a few milliseconds a payment.
 * @param period ISO 8601, by default everything; the end is excluded
 * @throws WalletError `other-keys`, `archive-unavailable`, `history-incomplete`; LedgerError
 */
export async function readStatement(
  deployment: DeploymentWithHistory,
  holder: Pick<AnyHolder, 'address' | 'keys'>,
  { from = new Date(0).toISOString(), to = new Date().toISOString() }: { from?: string; to?: string } = {},
): Promise<AccountStatement> {
  return await readAccountStatement({ ...deployment, archives: deployment.archives ?? [] }, holder, { from, to })
}
