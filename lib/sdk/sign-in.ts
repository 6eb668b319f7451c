import { TransactionBuilder } from '@stellar/stellar-sdk'
import type { Signer } from '#lib/wallet/signer.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'
import { type PayrollClient, take } from './payroll-client.ts'

/**
 * Signs in with a wallet (SEP-10): the signer signs the service's challenge. Resolves to the session token.
 * @throws PayrollError; WalletError `malformed` for a challenge that the ledger could apply
 */
export async function signIn(client: PayrollClient, signer: Signer): Promise<string> {
  const query = { account: signer.address }
  const challenge = await take(client.GET('/auth/sep10/challenge', { params: { query } }))
  const { network_passphrase: networkPassphrase } = challenge
  const transaction = TransactionBuilder.fromXdr(challenge.transaction, networkPassphrase)
  if (!('sequence' in transaction) || transaction.sequence !== '0') {
    throw new WalletError(
      'malformed',
      'the challenge has a sequence number, so it could be a payment: it is not signed',
    )
  }
  const signed = await signer.signTransaction(challenge.transaction, { networkPassphrase })
  return (await take(client.POST('/auth/sep10/verify', { body: { transaction: signed } }))).session
}
