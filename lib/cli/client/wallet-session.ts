import type { Keypair } from '@stellar/stellar-sdk'
import { createPayrollClient, type PayrollClient, take } from '#lib/sdk/payroll-client.ts'
import { type SignInOptions, signIn } from '#lib/sdk/sign-in.ts'
import { keypairSigner } from '#lib/wallet/signer.ts'

/** A client of the service at `base`, its origin. */
export function connect(base: string, session?: string): PayrollClient {
  return createPayrollClient({ baseUrl: `${base}/api`, ...(session !== undefined && { session }) })
}

/** The home domain that a command's --home-domain names, if --service isn't it. */
export const homeOf = (given: { 'home-domain'?: string | undefined }): SignInOptions => ({
  homeDomain: given['home-domain'],
})

/** Signs in with SEP-10. Resolves to the session token. @throws PayrollError; WalletError `challenge-invalid` */
export function signInWithWallet(base: string, wallet: Keypair, options?: SignInOptions): Promise<string> {
  return signIn(connect(base), keypairSigner(wallet), options)
}

/** Signs in with a wallet, and again whenever the session has expired. Resolves to a client with the session. */
export async function connectWallet(base: string, wallet: Keypair, options?: SignInOptions): Promise<PayrollClient> {
  let session: string
  const renew = async () => {
    session = await signInWithWallet(base, wallet, options)
  }
  await renew()
  return createPayrollClient({ baseUrl: `${base}/api`, session: () => session, renew })
}

/** A client with the session that --session names, or else with one of the wallet. */
export async function openSession(
  given: { service: string; session?: string | undefined; 'home-domain'?: string | undefined },
  wallet: () => Keypair,
): Promise<PayrollClient> {
  if (given.session !== undefined) return connect(given.service, given.session)
  return await connectWallet(given.service, wallet(), homeOf(given))
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
