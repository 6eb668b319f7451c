import { requestChallenge, verifyChallenge, type WalletSession } from './invite-requests.ts'

/** No wallet extension responds in this browser. */
export class NoWallet extends Error {}

/** Signs in with the account of the Freighter extension (SEP-10). */
export async function signInWithFreighter(): Promise<WalletSession> {
  // The library uses `window` as soon as it is loaded, so the server must not load it.
  const { isConnected, requestAccess, signTransaction } = await import('@stellar/freighter-api')
  if (!(await isConnected()).isConnected) {
    throw new NoWallet('Freighter, the wallet that this page supports, is not installed in this browser.')
  }
  const { address, error } = await requestAccess()
  if (error || address === '') throw new Error(refusalOf(error))
  const { transaction, passphrase } = await requestChallenge(address)
  const signed = await signTransaction(transaction, { networkPassphrase: passphrase, address })
  if (signed.error || signed.signedTxXdr === '') throw new Error(refusalOf(signed.error))
  return await verifyChallenge(signed.signedTxXdr)
}

function refusalOf(error: { message: string } | undefined): string {
  return `The wallet did not sign: ${error?.message ?? 'it gave no reason'}`
}
