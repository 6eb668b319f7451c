import { z } from 'zod'
import { Refusal } from '#lib/http/refusal.ts'
import type { Network } from './network.ts'

/** The RPC speaks for another network than the one that was configured. */
export class ForeignNetwork extends Error {
  constructor(passphrase: string) {
    super(`the RPC is one of another network: ${JSON.stringify(passphrase.slice(0, 100))}`)
    this.name = 'ForeignNetwork'
  }
}

/** A network whose RPC is not believed before it has said which network it is. */
export interface GuardedNetwork extends Network {
  /**
   * Asks the RPC for its passphrase, until it has once given the right one.
   * @throws Refusal `unavailable`; its cause is ForeignNetwork if it is the wrong one
   */
  verify(): Promise<void>
}

const NETWORK = z.object({ passphrase: z.string() })

/**
 * Asks the RPC for its network before the first other call. A signature holds for one network alone, but addresses and
 * balances of another network would be taken for this one's.
 */
export function guardNetwork(network: Network): GuardedNetwork {
  let verified: Promise<void> | undefined

  async function ask(): Promise<void> {
    const { passphrase } = await network.call('getNetwork', {}, NETWORK)
    if (passphrase === network.passphrase) return
    throw new Refusal('unavailable', 'the ledger cannot be reached', { cause: new ForeignNetwork(passphrase) })
  }

  function verify(): Promise<void> {
    verified ??= ask().catch((error: unknown) => {
      verified = undefined
      throw error
    })
    return verified
  }

  const { httpClient } = network.server
  const post = httpClient.post.bind(httpClient)
  httpClient.post = async (...call: Parameters<typeof post>) => {
    await verify()
    return await post(...call)
  }
  return {
    ...network,
    verify,
    call: async (...call) => {
      await verify()
      return await network.call(...call)
    },
  }
}
