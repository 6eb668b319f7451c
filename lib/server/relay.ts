import { ConfigurationError } from '#lib/config/environment.ts'
import { publicHalf } from '#lib/config/relay-key.ts'
import { type RelayHost, startHost } from '#lib/relay/host.ts'
import { openRelay } from '#lib/relay/opening.ts'
import { loadProver } from '#lib/relay/prover.ts'
import { openQueue, thumbprintOf } from '#lib/relay/queue.ts'
import { RELAY_TIMES, type Relay, type RelayTimes } from '#lib/relay/relay.ts'
import { prepareChannel } from '#lib/relay/setup.ts'
import type { Prover } from '#lib/wallet/prover.ts'
import type { Service } from './services.ts'

/** How a relay is to be run. */
export interface RelayOptions {
  /** in place of the one that the configuration names */
  prover?: Prover
  /** makes its channels fit on the side */
  prepares?: boolean
  /** works even where its port is taken */
  mayBeMute?: boolean
  times?: Partial<RelayTimes>
}

/**
 * The relay that the configuration of a service describes.
 * @throws ConfigurationError that names what is missing
 */
export async function composeRelay(
  service: Service,
  { prover, times }: RelayOptions = {},
  signal = new AbortController().signal,
): Promise<Relay> {
  const { settings, sponsor, network, database, now } = service
  const { relay } = settings
  if (!sponsor) throw new ConfigurationError('SPONSOR_SEED', 'is needed to run a relay')
  if (!relay) {
    throw new ConfigurationError(
      'RELAY_PRIVATE_KEY',
      'is needed to run a relay, with CHANNEL_SEEDS and CONFIDENTIAL_TOKEN',
    )
  }
  return openRelay({
    network,
    token: relay.token,
    database,
    sponsor,
    key: relay.key,
    queue: openQueue({
      database,
      relayKey: await thumbprintOf(publicHalf(relay.key)),
      works: { ...RELAY_TIMES, ...times },
    }),
    signers: relay.channels,
    prover: relay.prover === undefined && prover ? prover : await loadProver(relay.prover, settings.network.name),
    signal,
    now,
    ...(times && { times }),
  })
}

/** Runs a relay in this process. */
export async function startRelay(service: Service, options: RelayOptions = {}): Promise<RelayHost> {
  const ending = new AbortController()
  const relay = await composeRelay(service, options, ending.signal)
  const { settings, faucet } = service
  return await startHost(relay, {
    ...(options.prepares && { prepare: (channel) => prepareChannel(relay, faucet, channel, () => undefined) }),
    end: () => ending.abort(),
    port: settings.relay?.port ?? 0,
    network: settings.network.name,
    mayBeMute: options.mayBeMute ?? false,
  })
}
