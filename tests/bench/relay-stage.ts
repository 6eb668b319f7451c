import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { Keypair } from '@stellar/stellar-sdk'
import { readEnvironment } from '#lib/config/environment.ts'
import { generateRelayKey } from '#lib/config/relay-key.ts'
import { type Devnet, startDevnet } from '#lib/devnet/devnet.ts'
import { type LoadedProver, loadProver } from '#lib/prover/node/loading.ts'
import { prepareChannels } from '#lib/relay/setup.ts'
import { composeRelay } from '#lib/server/relay.ts'
import { type RunningService, startService } from '#lib/server/start.ts'
import { type CountingProxy, startCountingProxy } from './counting-proxy.ts'

/** The system under test: a service with its configuration, on a ledger in this process. */
export interface RelayStage {
  service: RunningService
  variables: Record<string, string> & { CHANNEL_SEEDS: string }
  devnet: Devnet
  /** between the ledger and the system under test */
  proxy: CountingProxy
  prover: LoadedProver | undefined
}

/** Runs `measure` on a separate ledger, with a service that has a sponsor, a faucet, and channels that can pay. */
export async function onLedger<Result>(
  databaseUrl: string,
  given: { proofs: 'real' | 'stand-in'; closeMs: number; channels: number },
  measure: (stage: RelayStage) => Promise<Result>,
): Promise<Result> {
  const { proofs, closeMs, channels } = given
  const passphrase = 'Standalone Network ; February 2017'
  const devnet = await startDevnet({ directory: null, port: 0, closeMs, passphrase, proofs })
  const proxy = await startCountingProxy(devnet.rpcUrl)
  const sponsor = Keypair.random()
  await fetch(`${devnet.friendbotUrl}?addr=${sponsor.publicKey()}`)
  const seeds = Array.from({ length: channels }, () => Keypair.random().secret())
  const variables = {
    DATABASE_URL: databaseUrl,
    SESSION_SECRET: 'a secret for one run of the benchmark',
    STELLAR_RPC_URL: proxy.url,
    CONFIDENTIAL_TOKEN: devnet.deployment.contracts.token,
    DEVNET_PROOFS: proofs,
    SPONSOR_SEED: sponsor.secret(),
    FAUCET_SEED: devnet.issuerSecret,
    BATCH_ENABLED: 'true',
    RELAY_PRIVATE_KEY: JSON.stringify(generateRelayKey()),
    RELAY_PORT: '0',
    CHANNEL_SEEDS: seeds.join(','),
  }
  const service = await startService(readEnvironment(variables))
  const prover = service.settings.relay && (await loadProver(service.settings.relay.prover, console.error))
  try {
    const relay = await composeRelay(service, { ...(prover && { prover }) })
    await prepareChannels({ relay, faucet: service.faucet, say: () => undefined })
    return await measure({ service, variables, devnet, proxy, prover })
  } finally {
    // The prover's worker would keep the process alive.
    await prover?.destroy?.()
    await service.close()
    await proxy.close()
    await devnet.close()
  }
}

/** How many ledgers it takes from the first of these to the last. */
export const span = (ledgers: readonly number[]) => Math.max(...ledgers) - Math.min(...ledgers) + 1

/** A relay in a separate process. */
export interface Host {
  /** payments that it recorded */
  paid(): number
  stop(): Promise<void>
}

/** `npm run relay`, as a separate process. */
export async function startHost(variables: Record<string, string>): Promise<Host> {
  const child: ChildProcess = fork(new URL('../../lib/cli/relay.ts', import.meta.url), {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    env: { ...process.env, ...variables },
  })
  let paid = 0
  const lines = child.stdout && createInterface(child.stdout)
  const ready = new Promise<void>((resolve, reject) => {
    lines?.on('line', (line) => {
      if (line.startsWith('relay ')) resolve()
      if (line.includes('"payment recorded"')) paid += 1
    })
    child.once('exit', (code) => reject(new Error(`the relay ended with code ${code}`)))
  })
  await ready
  return {
    paid: () => paid,
    stop: async () => {
      const gone = once(child, 'exit')
      child.kill('SIGTERM')
      await gone
    },
  }
}
