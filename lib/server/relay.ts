import { setTimeout } from 'node:timers/promises'
import { ConfigurationError } from '#lib/config/environment.ts'
import { publicHalf } from '#lib/config/relay-key.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { type LoadedProver, loadProver, type ProverSettings } from '#lib/prover/node/loading.ts'
import { type RelayHost, startHost } from '#lib/relay/host.ts'
import { openRelay, type Relay, type RelayTimes } from '#lib/relay/relay.ts'
import { announceRegistrations, prepareChannel } from '#lib/relay/setup.ts'
import { keyIdOf } from '#lib/wallet/seal.ts'
import type { Service } from './services.ts'

interface RelayOptions {
  /** used instead of the configured one */
  prover?: LoadedProver
  /** whether it prepares its channels (account, registration, balance) while it runs */
  prepares?: boolean
  /** whether it starts even if its port is taken, without its pages */
  mayBeMute?: boolean
  times?: Partial<RelayTimes>
}

/**
 * The relay for a service's configuration.
 * @throws ConfigurationError that names the missing variables
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
    relayKey: await keyIdOf(publicHalf(relay.key)),
    signers: relay.channels,
    archiveUrls: settings.archiveUrls,
    prover: prover ?? (await loadProver(relay.prover, (message) => log('error', 'prover', { message }))),
    signal,
    now,
    ...(times && { times }),
  })
}

/** Runs a relay in this process. If startup fails, destroys the prover, whose worker would keep the process alive. */
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
  // A service does not wait for this at startup; no item is proved before the keys match.
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

/** How long a relay waits at startup for a network that does not respond. */
const PATIENCE_MS = 10_000

/**
 * Checks before the first payment that the network would accept the prover's proofs: the circuit files must match each
 * other, and the network's verifier must have their keys. If the network does not respond, the keys are compared before
 * the first proof.
 * @throws ProverError, ConfigurationError
 */
async function checkProver(relay: Relay, settings: ProverSettings | undefined, prover: LoadedProver | undefined) {
  // The tests check the circuits that ship with the service; those of another deployment are only checked here.
  if (settings?.circuits !== undefined) await prover?.check?.()
  const compared = relay.deployment().catch((error: unknown) => {
    if (error instanceof ConfigurationError) throw error
  })
  await Promise.race([compared, setTimeout(PATIENCE_MS, undefined, { ref: false })])
}
