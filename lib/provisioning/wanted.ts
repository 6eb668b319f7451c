import type { Environment } from '#lib/config/environment.ts'
import type { DeploymentDocument } from './document.ts'

/** What is wanted, and what there is of it. */
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
