import { Account, type Keypair, Operation, TransactionBuilder, type xdr } from '@stellar/stellar-sdk'
import { sendAndWait, type TestNetwork } from '#lib/cli/client/participants.ts'

/** Changes nothing: no sequence number is that low. */
const NOTHING = Operation.bumpSequence({ bumpTo: '0' })

/**
 * Signs and submits a transaction with an account's key, without the service.
 * @param given.operation by default one that only uses up a sequence number
 * @param given.number the sequence number, by default the account's next one
 */
export async function signElsewhere(
  network: TestNetwork,
  signer: Keypair,
  { operation = NOTHING, number }: { operation?: xdr.Operation; number?: bigint } = {},
): Promise<void> {
  const address = signer.publicKey()
  const source = number === undefined ? await network.rpc.getAccount(address) : new Account(address, `${number - 1n}`)
  const transaction = new TransactionBuilder(source, { fee: '100', networkPassphrase: network.passphrase })
    .addOperation(operation)
    .setTimeout(60)
    .build()
  transaction.sign(signer)
  await sendAndWait(network, transaction.toXdr())
}

/** Skips the account's next sequence numbers, without the service. */
export async function bumpSequence(network: TestNetwork, signer: Keypair, by = 5n): Promise<void> {
  const { seqNum } = await network.rpc.getAccountEntry(signer.publicKey())
  await signElsewhere(network, signer, { operation: Operation.bumpSequence({ bumpTo: String(seqNum + by) }) })
}
