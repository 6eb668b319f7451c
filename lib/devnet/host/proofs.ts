import { createHash } from 'node:crypto'
import { readVerificationKeys } from '#lib/prover/node/circuit-folder.ts'
import { EMBEDDED_CIRCUITS, readEmbeddedString } from '#lib/prover/node/embedded.ts'
import { STAND_IN_KEYS, verifyStandIn } from '#lib/prover/stand-in.ts'
import { loadVerifier, type Verify } from '#lib/prover/verifier.ts'
import type { VerificationKeys } from '#lib/wallet/prover.ts'

/** How the ledger's verifier checks proofs. */
export interface Proofs {
  /** @throws ProofUnchecked; ProverFault for a proof with which the verifier failed twice */
  readonly verify: Verify
  /** Loads what `verify` needs, at the first call. */
  ready(): Promise<void>
  /** The keys in the verifier registry from the first ledger on; zeros if it accepts stand-ins. */
  readonly keys: VerificationKeys
}

export type ProofMode = 'real' | 'stand-in'

/** There is no verdict: the verifier failed, or is being loaded. The proof can be tried again. */
export class ProofUnchecked extends Error {
  override name = 'ProofUnchecked'
}

/** How many verdicts are remembered: a proof is simulated twice and applied once, within seconds. */
const REMEMBERED = 4_096

/** @throws ProverFault where verification keys or the reference string of the project are missing or damaged */
export async function openProofs(mode: ProofMode): Promise<Proofs> {
  if (mode === 'stand-in') return { keys: STAND_IN_KEYS, verify: verifyStandIn, ready: async () => undefined }
  const keys = await readVerificationKeys(EMBEDDED_CIRCUITS)
  const { g1, g2 } = await readEmbeddedString()
  // The verifier needs only the generator of the two megabytes.
  const generator = Buffer.from(g1.subarray(0, 64))
  return { keys, ...loadWhenNeeded(() => loadVerifier({ g1: generator, g2 })) }
}

/** A verifier that is loaded when it is first needed, and again after a failure, which may damage its memory. */
export function loadWhenNeeded(load: () => Promise<Verify>): Pick<Proofs, 'verify' | 'ready'> {
  let loading: Promise<void> | undefined
  let loaded: Verify | undefined
  const ready = () => {
    loading ??= load().then(
      (verify) => {
        loaded = verify
      },
      (cause) => {
        loading = undefined
        throw cause
      },
    )
    return loading
  }
  const replace = () => {
    loaded = undefined
    loading = undefined
    // The next ledger needs a verifier. A load that fails is tried again when a proof is verified.
    ready().catch(() => undefined)
  }
  const verify: Verify = (...given) => {
    if (!loaded) {
      ready().catch(() => undefined)
      throw new ProofUnchecked('the verifier of proofs is not loaded')
    }
    try {
      return loaded(...given)
    } catch (cause) {
      replace()
      throw cause
    }
  }
  return { verify: rememberVerdicts(verify), ready }
}

/**
 * Checks each proof once: a verdict is remembered under the digest of everything that it depends on. If the verifier
 * fails with a proof, the proof is tried a second time, as an earlier one may have damaged the verifier, and no third.
 */
export function rememberVerdicts(verify: Verify): Verify {
  const verdicts = new Map<string, boolean | 'failed' | Error>()
  const remember = (digest: string, verdict: boolean | 'failed' | Error) => {
    verdicts.set(digest, verdict)
    const [oldest] = verdicts.keys()
    if (verdicts.size > REMEMBERED && oldest !== undefined) verdicts.delete(oldest)
  }
  return (circuit, inputs, proof, key) => {
    const hash = createHash('sha256').update(circuit)
    for (const part of [inputs, proof, key]) hash.update(`:${part.length}:`).update(part)
    const digest = hash.digest('base64')
    const known = verdicts.get(digest)
    if (typeof known === 'boolean') return known
    if (known instanceof Error) throw known
    try {
      const verdict = verify(circuit, inputs, proof, key)
      remember(digest, verdict)
      return verdict
    } catch (cause) {
      if (cause instanceof ProofUnchecked) throw cause
      const fault = cause instanceof Error ? cause : new Error(String(cause))
      remember(digest, known === 'failed' ? fault : 'failed')
      if (known === 'failed') throw fault
      throw new ProofUnchecked('the verifier of proofs failed', { cause })
    }
  }
}
