import type { rpc } from '@stellar/stellar-sdk'
import type { RandomSource } from './keys.ts'
import type { Prover } from './prover.ts'

/** A confidential token on a network, and what the wallet needs to talk to it. Nothing in lib/wallet is bound to one. */
export interface Deployment {
  rpc: rpc.Server
  passphrase: string
  /** Contract strkeys: the confidential token, and the registry of auditors that it was made with. */
  token: string
  auditor: string
  prover: Prover
  /** Milliseconds since the epoch, for time bounds; by default the system's clock. */
  now?: () => number
  /** By default that of node:crypto. */
  random?: RandomSource
}
