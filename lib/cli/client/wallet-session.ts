import { type Keypair, TransactionBuilder } from '@stellar/stellar-sdk'
import { createPayrollClient, type PayrollClient, take } from '#lib/sdk/payroll-client.ts'

/** A client of the service at `base`, its origin. */
export function connect(base: string, session?: string): PayrollClient {
  return createPayrollClient({ baseUrl: `${base}/api`, ...(session !== undefined && { session }) })
}

/** Signs in with SEP-10. Resolves to the session token. @throws PayrollError */
export async function signInWithWallet(base: string, wallet: Keypair): Promise<string> {
  const client = connect(base)
  const query = { account: wallet.publicKey() }
  const challenge = await take(client.GET('/auth/sep10/challenge', { params: { query } }))
  const transaction = TransactionBuilder.fromXdr(challenge.transaction, challenge.network_passphrase)
  transaction.sign(wallet)
  const body = { transaction: transaction.toXdr() }
  return (await take(client.POST('/auth/sep10/verify', { body }))).session
}

/** Signs in with a wallet. Resolves to a client with the session. */
export async function connectWallet(base: string, wallet: Keypair): Promise<PayrollClient> {
  return connect(base, await signInWithWallet(base, wallet))
}

/**
 * Has a signed confidential transfer sponsored, optionally for a named payout. Resolves to its hash on the ledger.
 * @throws PayrollError
 */
export async function sponsorTransfer(client: PayrollClient, signedXDR: string, payoutId?: string): Promise<string> {
  const body = { signedXDR, ...(payoutId !== undefined && { payoutId }) }
  return (await take(client.POST('/transfer', { body }))).hash
}

/** The account that pays the fees, as the service reports it. */
export async function readSponsorAddress(base: string): Promise<string> {
  const { sponsor } = await take(connect(base).GET('/ready'))
  return String(sponsor.address)
}
