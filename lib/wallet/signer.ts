import { equalBytes } from '@noble/curves/utils.js'
import { Keypair, type Transaction, TransactionBuilder } from '@stellar/stellar-sdk'
import { WalletError } from './wallet-error.ts'

/**
 * Signs for one account: a wallet extension, a hardware wallet, a secret key. It shows its user what it signs, and may
 * refuse by rejecting.
 */
export interface Signer {
  /** G… */
  readonly address: string
  /** @returns the envelope (base64) with the signature added */
  signTransaction(envelope: string, options: { networkPassphrase: string }): Promise<string>
  /** @returns the SEP-53 signature (64 bytes) of a text, which must be the same each time: keys are derived from one */
  signMessage(message: string): Promise<Uint8Array>
}

/** The signer of a key that this process holds. */
export function keypairSigner(keypair: Keypair): Signer {
  return {
    address: keypair.publicKey(),
    signTransaction: async (envelope, { networkPassphrase }) => {
      const transaction = TransactionBuilder.fromXdr(envelope, networkPassphrase)
      transaction.sign(keypair)
      return transaction.toXdr()
    },
    signMessage: async (message) => keypair.signMessage(message),
  }
}

/** Whether something is a Signer rather than a key of this process. */
const isSigner = (by: Keypair | Signer): by is Signer => 'signTransaction' in by

/** The signer of a key, or the signer itself. */
export const signerOf = (by: Keypair | Signer): Signer => (isSigner(by) ? by : keypairSigner(by))

/** G… */
export const addressOf = (by: Keypair | Signer): string => (isSigner(by) ? by.address : by.publicKey())

/** A signature of `message` that verifies. @throws WalletError `signature-invalid` */
export async function signatureOf(signer: Signer, message: string): Promise<Uint8Array> {
  const signature = await signer.signMessage(message)
  if (Keypair.fromPublicKey(signer.address).verifyMessage(message, signature)) return signature
  throw new WalletError('signature-invalid', `the wallet's signature of the message is not that of ${signer.address}`)
}

function decode(envelope: string, networkPassphrase: string) {
  try {
    return TransactionBuilder.fromXdr(envelope, networkPassphrase)
  } catch (cause) {
    throw new WalletError('signature-invalid', 'the wallet returned something other than a transaction', { cause })
  }
}

/**
 * Has a transaction signed, and verifies the result: an extension may be set to another account or network. @throws
 * WalletError `signature-invalid`
 */
export async function addSignature(transaction: Transaction, by: Keypair | Signer): Promise<Transaction> {
  if (!isSigner(by)) {
    transaction.sign(by)
    return transaction
  }
  const { networkPassphrase } = transaction
  const envelope = await by.signTransaction(transaction.toXdr(), { networkPassphrase })
  const signed = decode(envelope, networkPassphrase)
  const hash = transaction.hash()
  const key = Keypair.fromPublicKey(by.address)
  const isSame = equalBytes(signed.hash(), hash)
  if (isSame && signed.signatures.some(({ signature }) => key.verify(hash, signature))) return signed as Transaction
  const reason = isSame ? `has no signature of ${by.address}` : 'is another one'
  throw new WalletError('signature-invalid', `the transaction that the wallet returned ${reason}`)
}
