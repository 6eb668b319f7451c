import { decodeBase64 } from '#lib/text/base64.ts'
import type { Signer } from '#lib/wallet/signer.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'

interface Failure {
  error?: { code?: number; message: string } | string
}

/** A wallet with the interface of SEP-43: the module `@stellar/freighter-api`, or Stellar Wallets Kit. */
export interface Sep43Wallet {
  getAddress(): Promise<{ address: string } & Failure>
  signTransaction(
    envelope: string,
    options: { networkPassphrase: string; address: string },
  ): Promise<{ signedTxXdr: string } & Failure>
  /** the signature in base64; old extensions return bytes */
  signMessage(
    message: string,
    options: { networkPassphrase: string; address: string },
  ): Promise<{ signedMessage: string | Uint8Array | null } & Failure>
}

/**
 * The signer of a SEP-43 wallet's current account. Ask the user for access first (Freighter: `requestAccess`).
 * @param networkPassphrase the network that the wallet must sign for
 * @throws WalletError `signer-refused` if the user or the wallet refuses; the signer throws it as well
 */
export async function openSep43Signer(wallet: Sep43Wallet, networkPassphrase: string): Promise<Signer> {
  const { address } = await result(wallet.getAddress())
  if (!address) throw new WalletError('signer-refused', 'the wallet names no account: it may not have given access yet')
  const options = { networkPassphrase, address }
  return {
    address,
    signTransaction: async (envelope) => (await result(wallet.signTransaction(envelope, options))).signedTxXdr,
    signMessage: async (message) => {
      const { signedMessage } = await result(wallet.signMessage(message, options))
      const signature = typeof signedMessage === 'string' ? decodeBase64(signedMessage) : signedMessage
      if (!signature) throw new WalletError('signature-invalid', 'the wallet returned no signature of the message')
      return Uint8Array.from(signature)
    },
  }
}

/** Stellar Wallets Kit rejects with a plain object, Freighter resolves with an error. */
async function result<Success extends Failure>(request: Promise<Success>): Promise<Success> {
  const response = await request.catch((cause: unknown) => ({ error: cause as Failure['error'] }))
  if (!('error' in response && response.error)) return response as Success
  const { error } = response
  const message = typeof error === 'string' ? error : (error.message ?? 'for an unknown reason')
  throw new WalletError('signer-refused', `the wallet did not sign: ${message}`, { cause: error })
}
