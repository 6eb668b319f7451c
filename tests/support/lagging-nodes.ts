import { Keypair } from '@stellar/stellar-sdk'
import { sendAndWait, type TestNetwork } from '#lib/cli/client/participants.ts'
import { requestFriendbot } from '#lib/stellar/friendbot.ts'
import { buildRegister } from '#lib/wallet/calls.ts'
import { type Holder, openHolder } from '#lib/wallet/keys.ts'
import { passLedgers } from './ledgers.ts'

/** One of two nodes is three ledgers behind. */
export const LAG: readonly number[] = [0, 3]

/** Waits until the lagging node has the network's current state, so that both nodes return it. */
export const catchUp = (network: TestNetwork): Promise<void> => passLedgers(network, 2 * Math.max(...LAG) + 1)

/** Creates an account whose registration only one of the nodes has. */
export async function enrolUnevenly(network: TestNetwork): Promise<Holder> {
  const signer = Keypair.random()
  await requestFriendbot(network.friendbotUrl, signer.publicKey())
  await catchUp(network)
  const holder = openHolder(signer, network.token)
  const { signedXdr } = await buildRegister(network, holder, { auditorId: network.auditorId })
  await sendAndWait(network, signedXdr)
  return holder
}
