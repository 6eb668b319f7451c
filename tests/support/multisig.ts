import { Keypair, Operation, TransactionBuilder } from '@stellar/stellar-sdk'
import { sendAndWait, type TestNetwork } from '#lib/cli/client/participants.ts'

type Options = Parameters<typeof Operation.setOptions>[0]

/** Changes the signers and thresholds of an account by a transaction of another one, so that it uses none of its sequence numbers. */
export async function setOptions(
  network: TestNetwork,
  address: string,
  signers: readonly Keypair[],
  ...options: readonly Options[]
): Promise<void> {
  const outsider = Keypair.random()
  await fetch(`${network.friendbotUrl}?addr=${outsider.publicKey()}`)
  const source = await network.rpc.getAccount(outsider.publicKey())
  const builder = new TransactionBuilder(source, { fee: '1000', networkPassphrase: network.passphrase }).setTimeout(60)
  for (const one of options) builder.addOperation(Operation.setOptions({ ...one, source: address }))
  const transaction = builder.build()
  transaction.sign(outsider, ...signers)
  await sendAndWait(network, transaction.toXdr())
}

/** Adds signers of weight 1 to an account whose own key has weight 1, and raises its thresholds to `needed`. */
export async function shareAccount(
  network: TestNetwork,
  account: { address: string; signer: Keypair },
  others: readonly Keypair[],
  needed: number,
): Promise<void> {
  const added = others.map((other) => ({ signer: { ed25519PublicKey: other.publicKey(), weight: 1 } }))
  const thresholds = { medThreshold: needed, highThreshold: needed }
  await setOptions(network, account.address, [account.signer], ...added, thresholds)
}
