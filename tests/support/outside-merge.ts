import { Address, authorizeEntry, Keypair, Operation, rpc, TransactionBuilder, type xdr } from '@stellar/stellar-sdk'
import { sendAndWait } from '#lib/cli/client/participants.ts'
import { requestFriendbot } from '#lib/stellar/friendbot.ts'
import { buildDeposit } from '#lib/wallet/calls.ts'
import type { TestLedger } from './test-ledger.ts'

/**
 * Deposits one unit for an account, and signs its merge, which makes every proof from its balance stale. Another account sends
 * the merge, so that it takes no sequence number of the first one.
 */
export async function prepareOutsideMerge({ network, issuer }: TestLedger, signer: Keypair): Promise<string> {
  const { rpc: server, passphrase, token, friendbotUrl } = network
  const address = signer.publicKey()
  await sendAndWait(network, (await buildDeposit(network, issuer, { to: address, amount: 1n })).signedXdr)
  const outsider = Keypair.random()
  await requestFriendbot(friendbotUrl, outsider.publicKey())
  const build = async (auth: xdr.SorobanAuthorizationEntry[]) =>
    new TransactionBuilder(await server.getAccount(outsider.publicKey()), { fee: '100', networkPassphrase: passphrase })
      .addOperation(
        Operation.invokeContractFunction({
          contract: token,
          function: 'merge',
          args: [new Address(address).toScVal()],
          auth,
        }),
      )
      .setTimeout(120)
      .build()
  const recorded = await server.simulateTransaction(await build([]))
  if (!rpc.Api.isSimulationSuccess(recorded)) throw new Error('the merge cannot be simulated')
  const { latestLedger } = recorded
  const signed = await Promise.all(
    (recorded.result?.auth ?? []).map((entry) => authorizeEntry(entry, signer, latestLedger + 100, passphrase)),
  )
  const transaction = await server.prepareTransaction(await build(signed))
  transaction.sign(outsider)
  return transaction.toXdr()
}
