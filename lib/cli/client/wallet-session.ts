import type { Keypair } from '@stellar/stellar-sdk'
import { createPayrollClient, type PayrollClient, take } from '#lib/sdk/payroll-client.ts'
import { signIn } from '#lib/sdk/sign-in.ts'
import { keypairSigner } from '#lib/wallet/signer.ts'

/** A client of the service at `base`, its origin. */
export function connect(base: string, session?: string): PayrollClient {
  return createPayrollClient({ baseUrl: `${base}/api`, ...(session !== undefined && { session }) })
}

/** Signs in with SEP-10. Resolves to the session token. @throws PayrollError */
export function signInWithWallet(base: string, wallet: Keypair): Promise<string> {
  return signIn(connect(base), keypairSigner(wallet))
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
