import { setTimeout } from 'node:timers/promises'
import { ConfigurationError } from '#lib/config/environment.ts'
import { publicHalf } from '#lib/config/relay-key.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { type LoadedProver, loadProver, type ProverSettings } from '#lib/prover/node/loading.ts'
import { type RelayHost, startHost } from '#lib/relay/host.ts'
import { openQueue, thumbprintOf } from '#lib/relay/queue.ts'
import { openRelay, RELAY_TIMES, type Relay, type RelayTimes } from '#lib/relay/relay.ts'
import { announceRegistrations, prepareChannel } from '#lib/relay/setup.ts'
import type { Service } from './services.ts'

/** How a relay is to be run. */
interface RelayOptions {
  /** in place of the one that the configuration names */
  prover?: LoadedProver
  /** prepares its channels (account, registration, balance) while it runs */
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
      intervals: { ...RELAY_TIMES, ...times },
    }),
    signers: relay.channels,
    archiveUrls: settings.archiveUrls,
    prover: prover ?? (await loadProver(relay.prover, (message) => log('error', 'prover', { message }))),
    signal,
    now,
    ...(times && { times }),
  })
}

/** Runs a relay in this process. One that does not start leaves no prover behind, whose worker would keep the process. */
export async function startRelay(service: Service, options: RelayOptions = {}): Promise<RelayHost> {
  const { relay } = service.settings
  const prover =
    options.prover ?? (relay && (await loadProver(relay.prover, (message) => log('error', 'prover', { message }))))
  try {
    const host = await runRelay(service, { ...options, ...(prover && { prover }) })
    return {
      ...host,
      close: async () => {
        await host.close()
        await prover?.destroy?.()
      },
    }
  } catch (error) {
    await prover?.destroy?.()
    throw error
  }
}

async function runRelay(service: Service, options: RelayOptions): Promise<RelayHost> {
  const ending = new AbortController()
  const { settings, faucet } = service
  const relay = await composeRelay(service, options, ending.signal)
  const checked = checkProver(relay, settings.relay?.prover, options.prover)
  // The start of a service does not wait for it; until the keys agree no item is proved.
  if (options.mayBeMute) checked.catch((error: unknown) => log('error', 'relay', { failure: describeFailure(error) }))
  else await checked
  const announced = announceRegistrations(relay, (progress) => log('info', 'registering channels', { progress }))
  return await startHost(relay, {
    ...(options.prepares && {
      prepare: (channel) => prepareChannel({ relay: announced, faucet, say: () => undefined }, channel),
    }),
    end: () => ending.abort(),
    host: settings.relay?.host,
    port: settings.relay?.port ?? 0,
    network: settings.network.name,
    mayBeMute: options.mayBeMute ?? false,
  })
}

/** How long the start of a relay waits for a network that does not answer. */
const PATIENCE_MS = 10_000

/**
 * Finds out before anything is paid whether proofs would hold: whether the files of another deployment belong together,
 * and whether the network's verifier has their keys. A network that cannot be reached is asked before the first proof.
 * @throws ProverFault, ConfigurationError
 */
async function checkProver(relay: Relay, settings: ProverSettings | undefined, prover: LoadedProver | undefined) {
  // The files that come with the service are checked by its tests, those of another deployment only here.
  if (settings?.circuits !== undefined) await prover?.check?.()
  const asked = relay.deployment().catch((error: unknown) => {
    if (error instanceof ConfigurationError) throw error
  })
  await Promise.race([asked, setTimeout(PATIENCE_MS, undefined, { ref: false })])
}
