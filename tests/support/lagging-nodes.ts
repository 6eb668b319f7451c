import { Keypair } from '@stellar/stellar-sdk'
import { expect } from 'vitest'
import { sendAndWait, type TestNetwork } from '#lib/cli/client/participants.ts'
import { requestFriendbot } from '#lib/stellar/friendbot.ts'
import { buildRegister } from '#lib/wallet/calls.ts'
import { type Holder, openHolder } from '#lib/wallet/keys.ts'

/** One node of two is three ledgers behind. */
export const LAG: readonly number[] = [0, 3]

/** Waits until the node that lags knows what the network knows now, so that either of the two may be asked. */
export async function catchUp({ rpc }: TestNetwork): Promise<void> {
  const { sequence } = await rpc.getLatestLedger()
  const behind = 2 * Math.max(...LAG)
  await expect.poll(async () => (await rpc.getLatestLedger()).sequence).toBeGreaterThan(sequence + behind)
}

/** A new account whose registration one node knows, and the other does not know yet. */
export async function enrolUnevenly(network: TestNetwork): Promise<Holder> {
  const signer = Keypair.random()
  await requestFriendbot(network.friendbotUrl, signer.publicKey())
  await catchUp(network)
  const holder = openHolder(signer, network.token)
  const { signedXdr } = await buildRegister(network, holder, { auditorId: network.auditorId })
  await sendAndWait(network, signedXdr)
  return holder
}
