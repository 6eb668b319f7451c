import type { Verify } from '#lib/prover/verifier.ts'

/** The ledger in which a call runs: the one being built, or in a simulation the last closed one. */
export interface LedgerContext {
  readonly sequence: number
  /** unix seconds */
  readonly closeTime: number
  /** SHA-256 of the passphrase, 32 bytes */
  readonly networkId: Uint8Array
  readonly passphrase: string
  /** checks a proof as the network's verifier does */
  readonly verify: Verify
}
