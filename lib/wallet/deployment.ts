import type { rpc } from '@stellar/stellar-sdk'
import type { EventArchive } from './archive.ts'
import type { RandomSource } from './keys.ts'
import type { Prover } from './prover.ts'

/** A confidential token on a network: enough for calls without a proof, deposit and merge. */
export interface TokenOnNetwork {
  rpc: rpc.Server
  passphrase: string
  /** Contract strkey of the confidential token. */
  token: string
  /** Milliseconds since the epoch, for time bounds; by default the system's clock. */
  now?: () => number
}

/**
 * A token with everything that the wallet needs. It is passed to every function, so that one process can work with
 * several.
 */
export interface Deployment extends TokenOnNetwork {
  /** Contract strkey of the registry of auditors that the token was made with. */
  auditor: string
  prover: Prover
  /** Where events are read that the RPC no longer has; by default nowhere. */
  archives?: readonly EventArchive[]
  /** The system's clock by default. */
  random?: RandomSource
}
