import { Keypair } from '@stellar/stellar-sdk'
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
  const { address } = await result(() => wallet.getAddress())
  if (!address) throw new WalletError('signer-refused', 'the wallet names no account: it may not have given access yet')
  const options = { networkPassphrase, address }
  return {
    address,
    signTransaction: async (envelope) => {
      const { signedTxXdr } = await result(() => wallet.signTransaction(envelope, options))
      if (typeof signedTxXdr === 'string') return signedTxXdr.trim()
      throw new WalletError('signature-invalid', 'the wallet returned no transaction')
    },
    signMessage: async (message) => {
      const { signedMessage } = await result(() => wallet.signMessage(message, options))
      const candidates = signaturesIn(signedMessage)
      const key = Keypair.fromPublicKey(address)
      const signature = candidates.find((candidate) => key.verifyMessage(message, candidate)) ?? candidates[0]
      if (!signature) throw new WalletError('signature-invalid', 'the wallet returned no signature of the message')
      return signature
    },
  }
}

/** The size of an Ed25519 signature, in bytes. */
const SIGNATURE_BYTES = 64

/**
 * The signatures that a wallet's response may encode: SEP-43 requires base64, but wallets return other encodings. At most one of
 * them is valid, and the caller finds it by verifying each.
 */
function signaturesIn(signed: unknown): Uint8Array[] {
  const candidates = typeof signed === 'string' ? textsIn(signed.trim()).map(bytesIn) : [bytesOf(signed)]
  return candidates.filter((bytes) => bytes?.length === SIGNATURE_BYTES) as Uint8Array[]
}

/** A text, and the text that it encodes: some wallets encode a signature twice. */
function textsIn(text: string): string[] {
  const inner = decodeAny(text)
  return inner ? [text, new TextDecoder().decode(inner).trim()] : [text]
}

const bytesIn = (text: string): Uint8Array | undefined =>
  /^[\da-f]{128}$/i.test(text)
    ? Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
    : decodeAny(text)

/** Base64 or base64url, with or without padding. */
function decodeAny(text: string): Uint8Array | undefined {
  const body = text.replaceAll('-', '+').replaceAll('_', '/').replace(/=+$/, '')
  return decodeBase64(body.padEnd(Math.ceil(body.length / 4) * 4, '='))
}

/** Bytes, also of a Buffer or an array that has been through JSON. */
function bytesOf(signed: unknown): Uint8Array | undefined {
  if (typeof signed !== 'object' || signed === null) return undefined
  if ('data' in signed) return bytesOf(signed.data)
  const values: unknown[] = Object.values(signed)
  return values.every((value): value is number => typeof value === 'number') ? Uint8Array.from(values) : undefined
}

/** Stellar Wallets Kit rejects with a plain object, Freighter resolves with an error. Others reject with anything, or nothing. */
async function result<Success extends Failure>(request: () => Promise<Success>): Promise<Success> {
  const response: unknown = await (async () => await request())().catch((cause: unknown) => {
    throw refused(cause)
  })
  if (typeof response !== 'object' || response === null) throw refused(undefined)
  if ('error' in response && response.error) throw refused(response.error)
  return response as Success
}

function refused(cause: unknown): WalletError {
  const named = typeof cause === 'object' && cause !== null && 'message' in cause ? cause.message : cause
  const message = typeof named === 'string' && named !== '' ? named : 'for an unknown reason'
  return new WalletError('signer-refused', `the wallet did not sign: ${message}`, { cause })
}
