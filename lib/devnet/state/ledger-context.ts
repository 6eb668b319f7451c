import type { Verify } from '#lib/prover/verifier.ts'

/** The ledger in which a call runs: the one being built, or the last closed one in a simulation. */
export interface LedgerContext {
  readonly sequence: number
  /** unix seconds */
  readonly closeTime: number
  /** SHA-256 of the passphrase, 32 bytes */
  readonly networkId: Uint8Array
  readonly passphrase: string
  /** the number of the protocol, as the RPC reports it */
  readonly protocol: 28 | 30
  /** checks a proof like the network's verifier */
  readonly verify: Verify
}
