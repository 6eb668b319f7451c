import { Refusal } from '#lib/http/refusal.ts'
import { readAccount } from '#lib/stellar/accounts.ts'
import type { Network } from '#lib/stellar/network.ts'

/** Looks for what friendbot has sent, in case the RPC is behind. */
const LOOKS = 30

/** Friendbot answers when its transaction is on the ledger. */
const FRIENDBOT_PATIENCE_MS = 60_000

/** A network with its friendbot, if it has one. */
export interface Funder {
  network: Network
  friendbotUrl: string | undefined
}

/** XLM of an account (G…), in stroops; undefined without an account. @throws Refusal `unavailable` */
export async function readXlm({ network }: Pick<Funder, 'network'>, address: string): Promise<bigint | undefined> {
  return (await readAccount(network.server, address)).account?.balance
}

/**
 * Has friendbot fill an account up that is not there, or has less than `least` (stroops). Whether it had to.
 * @throws Refusal `not-wired` where the network has no friendbot; `unavailable`
 */
export async function ensureXlm(funder: Funder, address: string, least: bigint): Promise<boolean> {
  const before = await readXlm(funder, address)
  if (before !== undefined && before >= least) return false
  const answer = await askFriendbot(funder, address)
  for (let look = 0; look < LOOKS; look += 1) {
    if ((await readXlm(funder, address)) !== before) return true
    // Somebody may have asked for the same account at the same time, and then friendbot refuses one of the two.
    if (!answer.ok) break
    await new Promise((resolve) => setTimeout(resolve, funder.network.pollMs))
  }
  throw new Refusal('unavailable', `friendbot answered ${answer.status}, and ${address} has no more than before`)
}

async function askFriendbot({ friendbotUrl }: Funder, address: string): Promise<Response> {
  if (!friendbotUrl) throw new Refusal('not-wired', `the network has no friendbot: give XLM to ${address} yourself`)
  const url = new URL(friendbotUrl)
  url.searchParams.set('addr', address)
  return await fetch(url, { signal: AbortSignal.timeout(FRIENDBOT_PATIENCE_MS) }).catch((cause: unknown) => {
    throw new Refusal('unavailable', 'friendbot cannot be reached', { cause })
  })
}
