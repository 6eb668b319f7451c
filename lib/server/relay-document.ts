import { Keypair } from '@stellar/stellar-sdk'
import type { Environment } from '#lib/config/environment.ts'
import { type PrivateRelayKey, type PublicRelayKey, publicHalf } from '#lib/config/relay-key.ts'

/** The keys that the embedded parts provide for a relay. */
interface EmbeddedRelay {
  channelSeeds?: string[]
  relayKey?: PrivateRelayKey
}

/** The keys of a relay in this process; undefined if there is none. */
export function relayKeys(
  environment: Environment,
  embedded: EmbeddedRelay,
): { key: PrivateRelayKey; channels: Keypair[] } | undefined {
  // A configured public key means that the relays run elsewhere.
  const key = environment.RELAY_PRIVATE_KEY ?? (environment.RELAY_PUBLIC_KEY ? undefined : embedded.relayKey)
  const channels = channelSeeds(environment, embedded).map((seed) => Keypair.fromSecret(seed))
  return key && channels.length > 0 ? { key, channels } : undefined
}

export function channelSeeds(environment: Environment, embedded: EmbeddedRelay): string[] {
  return environment.CHANNEL_SEEDS.length > 0 ? environment.CHANNEL_SEEDS : (embedded.channelSeeds ?? [])
}

/** The public half of a relay in this process, in the form of a deployment document. */
export function describeRelay(
  environment: Environment,
  embedded: EmbeddedRelay,
): { publicKey: PublicRelayKey; channels: string[] } | undefined {
  const keys = relayKeys(environment, embedded)
  return keys && { publicKey: publicHalf(keys.key), channels: keys.channels.map((channel) => channel.publicKey()) }
}
