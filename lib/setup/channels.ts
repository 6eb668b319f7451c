import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Keypair } from '@stellar/stellar-sdk'
import type { Environment } from '#lib/config/environment.ts'
import { loadProver, proverSettings } from '#lib/prover/node/loading.ts'
import { announceRegistrations, prepareChannels } from '#lib/relay/setup.ts'
import { composeRelay } from '#lib/server/relay.ts'
import { startService } from '#lib/server/start.ts'
import { readConfidentialAccounts } from '#lib/wallet/account.ts'
import { NOTHING, opens } from '#lib/wallet/commitment.ts'
import { ensureXlm, type Funder } from './accounts.ts'
import type { DeploymentDocument } from './document.ts'
import type { DeployedToken } from './token.ts'

/** The task of `npm run setup`, and the settings that exist already. */
export interface Provisioning {
  document: DeploymentDocument
  /** the text of the environment file so far, and its name for messages */
  kept: string
  file: string
  /** keys from elsewhere: they must be those of the file, if that has any */
  given: Pick<Environment, 'SPONSOR_SEED' | 'FAUCET_SEED' | 'CHANNEL_SEEDS' | 'RELAY_PRIVATE_KEY' | 'SESSION_SECRET'> &
    Pick<Environment, 'DATABASE_URL' | 'DEVNET_PROOFS' | 'PROVER_CIRCUITS' | 'PROVER_CRS' | 'RELAY_PROVER'>
  channels: number
  /** keeps the finished text, before anything is asked of the network for the keys in it */
  keep(text: string): void
  say(line: string): void
}

/** In stroops. An account with any XLM will do, since the sponsor pays the fees of a channel's transfers. */
const THERE = 1n

/**
 * Prepares the relay's channels as far as possible: makes their accounts always, and registers and funds them where there is
 * a prover and a faucet. Without the service's database a temporary one records the steps. Then channels that are funded
 * already are left alone, since only the service's database knows their balances.
 */
export async function provisionChannels(
  given: Pick<Provisioning, 'document' | 'channels' | 'say'> & {
    /** of the service */
    databaseUrl: string | undefined
    environment: Environment
    funder: Funder
    deployed: DeployedToken
    hasFaucet: boolean
    funds: bigint
  },
): Promise<void> {
  const { environment, document, funder, deployed, say } = given
  const seeds = environment.CHANNEL_SEEDS.slice(0, given.channels)
  const addresses = seeds.map((seed) => Keypair.fromSecret(seed).publicKey())
  if (addresses.length === 0) return
  const needsProver = !deployed.isEmbedded && (environment.RELAY_PROVER ?? environment.PROVER_CIRCUITS) === undefined
  if (needsProver || !given.hasFaucet) {
    for (const address of addresses) {
      await ensureXlm(funder, address, THERE)
      say(`channel  ${address}, an account with XLM and nothing more`)
    }
    const lack = needsProver ? 'a real network wants real proofs (PROVER_CIRCUITS)' : 'there is no faucet'
    return say(`channels are not registered or funded: ${lack}. Batch jobs stay off; all else works`)
  }
  const fit = given.databaseUrl ? new Set<string>() : await findFit(funder, deployed, addresses)
  for (const address of fit) say(`channel  ${address}, ready`)
  const unfit = seeds.filter((_, index) => !fit.has(addresses[index] ?? ''))
  if (unfit.length === 0) return
  const directory = mkdtempSync(join(tmpdir(), 'payroll-setup-'))
  // With batch jobs off, `startService` starts no relay of its own beside this one.
  const off = { BATCH_ENABLED: false, CHANNEL_SEEDS: unfit }
  const place = { DATABASE_URL: given.databaseUrl, DATA_DIR: directory }
  const service = await startService({ ...environment, ...off, ...place })
  const prover = await loadProver(proverSettings(environment), say)
  try {
    const relay = announceRegistrations(await composeRelay(service, { prover }), (line) => say(`         ${line}`))
    await prepareChannels({
      relay,
      faucet: service.faucet,
      say: (address, step) => say(`channel  ${address}, ${step}`),
      auditorId: document.auditor.id,
      funds: given.funds,
    })
  } finally {
    await prover.destroy?.()
    await service.close()
    rmSync(directory, { recursive: true, force: true })
  }
}

/** The channels that need nothing more: registered, with a spendable balance, and nothing left to merge. */
async function findFit({ network }: Funder, { token }: DeployedToken, addresses: string[]): Promise<Set<string>> {
  const accounts = await readConfidentialAccounts(network.server, token, addresses)
  const fit = [...accounts].filter(
    ([, { spendable, receiving }]) => !opens(NOTHING, spendable) && opens(NOTHING, receiving),
  )
  return new Set(fit.map(([address]) => address))
}
