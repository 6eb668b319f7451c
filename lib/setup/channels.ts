import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Keypair } from '@stellar/stellar-sdk'
import type { Environment } from '#lib/config/environment.ts'
import type { Faucet } from '#lib/faucet/faucet.ts'
import { type LoadedProver, loadProver, proverSettings } from '#lib/prover/node/loading.ts'
import type { Relay } from '#lib/relay/relay.ts'
import { announceRegistrations, prepareChannels } from '#lib/relay/setup.ts'
import { readConfidentialAccounts } from '#lib/wallet/account.ts'
import { NOTHING, opens } from '#lib/wallet/commitment.ts'
import { ensureXlm, type Funder } from './accounts.ts'
import type { DeploymentDocument } from './document.ts'
import type { DeployedToken } from './token.ts'

/** The parts of the service that setup uses. The command passes them in: setup and server do not import each other. */
export interface SetupServices {
  /** @throws ConfigurationError for settings that the boot would refuse */
  composeSettings(environment: Environment): { sponsor: { keypair: Keypair } | undefined }
  openRelay(
    environment: Environment,
    prover: LoadedProver,
  ): Promise<{ relay: Relay; faucet: Faucet | undefined; close(): Promise<void> }>
}

export interface Provisioning {
  document: DeploymentDocument
  services: SetupServices
  /** the current text of the environment file */
  envText: string
  /** the name of the environment file, for messages */
  file: string
  /** keys from the environment: they must be those of the file, if it has any */
  keys: Pick<Environment, 'SPONSOR_SEED' | 'FAUCET_SEED' | 'CHANNEL_SEEDS' | 'RELAY_PRIVATE_KEY' | 'SESSION_SECRET'> &
    Pick<Environment, 'DATABASE_URL' | 'DEVNET_PROOFS' | 'PROVER_CIRCUITS' | 'PROVER_CRS' | 'RELAY_PROVER'>
  /** undefined for as many as there are seeds, or three without any */
  channels: number | undefined
  /** saves the complete text, before any request to the network that involves its keys */
  keep(text: string): void
  say(line: string): void
}

/** In stroops. Any XLM is enough for an account, since the sponsor pays the fees of a channel's transfers. */
const MIN_XLM = 1n

/**
 * Prepares the relay's channels as far as possible: always creates their accounts, and registers and funds them if
 * there is a prover and a faucet. Without the service's database, a temporary one records the deposits. Channels that
 * already have a balance are then skipped, because only the service's database can open their balances.
 */
export async function provisionChannels(
  input: Pick<Provisioning, 'document' | 'services' | 'say'> & {
    channels: number
    /** of the service */
    databaseUrl: string | undefined
    environment: Environment
    funder: Funder
    deployed: DeployedToken
    hasFaucet: boolean
    funds: bigint
  },
): Promise<void> {
  const { environment, document, funder, deployed, say } = input
  const seeds = environment.CHANNEL_SEEDS.slice(0, input.channels)
  const addresses = seeds.map((seed) => Keypair.fromSecret(seed).publicKey())
  if (addresses.length === 0) return
  const needsProver = !deployed.isEmbedded && (environment.RELAY_PROVER ?? environment.PROVER_CIRCUITS) === undefined
  if (needsProver || !input.hasFaucet) {
    for (const address of addresses) {
      await ensureXlm(funder, address, MIN_XLM)
      say(`channel  ${address}, an account with XLM only`)
    }
    const reason = needsProver ? 'a real network needs real proofs (PROVER_CIRCUITS)' : 'there is no faucet'
    return say(`channels are not registered or funded: ${reason}. Batch jobs stay off; everything else works`)
  }
  const ready = input.databaseUrl ? new Set<string>() : await findReady(funder, deployed, addresses)
  for (const address of ready) say(`channel  ${address}, ready`)
  const unprepared = seeds.filter((_, index) => !ready.has(addresses[index] ?? ''))
  if (unprepared.length === 0) return
  const directory = mkdtempSync(join(tmpdir(), 'payroll-setup-'))
  const prover = await loadProver(proverSettings(environment), say)
  try {
    const { relay, faucet, close } = await input.services.openRelay(
      { ...environment, CHANNEL_SEEDS: unprepared, DATABASE_URL: input.databaseUrl, DATA_DIR: directory },
      prover,
    )
    try {
      await prepareChannels({
        relay: announceRegistrations(relay, (line) => say(`         ${line}`)),
        faucet,
        say: (address, step) => say(`channel  ${address}, ${step}`),
        auditorId: document.auditor.id,
        funds: input.funds,
      })
    } finally {
      await close()
    }
  } finally {
    await prover.destroy?.()
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Finds the channels that need no preparation: registered, with a spendable balance, and with nothing to merge. */
async function findReady({ network }: Funder, { token }: DeployedToken, addresses: string[]): Promise<Set<string>> {
  const accounts = await readConfidentialAccounts(network.server, token, addresses)
  const ready = [...accounts].filter(
    ([, { spendable, receiving }]) => !opens(NOTHING, spendable) && opens(NOTHING, receiving),
  )
  return new Set(ready.map(([address]) => address))
}
