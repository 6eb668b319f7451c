import { type Transaction, TransactionBuilder, type xdr } from '@stellar/stellar-sdk'
import { sendAndWait, type TestNetwork } from '#lib/cli/client/participants.ts'
import { buildTransfer, proveTransferAhead } from '#lib/wallet/calls.ts'
import { NOTHING } from '#lib/wallet/commitment.ts'
import { invoke } from '#lib/wallet/invocation.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import { buildCall, signCall, simulateCall } from '#lib/wallet/transaction.ts'

/** How long each transaction is valid, with some time to spare for the sponsor. */
const SECONDS = 300

/**
 * Transfers of zero from one account to another, signed with consecutive sequence numbers, base64. Each is proved from
 * the balance after the previous one. Only the first can be simulated: the others touch the same entries, so they reuse
 * its resources.
 */
export async function prepareChain(network: TestNetwork, payer: Holder, to: string, length: number): Promise<string[]> {
  // The first transfer of new accounts pays for a longer lifetime of their entries, which must not be declared again.
  const opened = await buildTransfer(network, payer, { to, amount: 0n, opening: NOTHING })
  await sendAndWait(network, opened.signedXdr)
  const source = await network.rpc.getAccount(payer.signer.publicKey())
  const chain: string[] = []
  let opening = opened.next
  let resources: xdr.SorobanTransactionData | undefined
  while (chain.length < length) {
    const { name, args, next } = await proveTransferAhead(network, payer, { to, amount: 0n, opening })
    const options = { seconds: SECONDS }
    const operation = invoke(network, name, args)
    if (resources) {
      const bare = buildCall(network, source, operation, options)
      const transaction = TransactionBuilder.cloneFrom(bare).setSorobanData(resources).build()
      chain.push((await signCall(transaction, payer.signer)).signedXdr)
    } else {
      const transaction = await simulateCall(network, source, operation, options)
      chain.push((await signCall(transaction, payer.signer)).signedXdr)
      resources = resourcesOf(transaction)
    }
    opening = next
  }
  return chain
}

function resourcesOf(transaction: Transaction): xdr.SorobanTransactionData {
  const envelope = transaction.toEnvelope()
  if (envelope.type !== 'envelopeTypeTx' || envelope.v1.tx.ext.type !== 'sorobanData') {
    throw new Error('the transaction declares no resources')
  }
  return envelope.v1.tx.ext.sorobanData
}
