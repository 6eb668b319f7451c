import { createHash } from 'node:crypto'
import { readVerificationKeys } from '#lib/prover/node/circuit-folder.ts'
import { EMBEDDED_CIRCUITS, readEmbeddedString } from '#lib/prover/node/embedded.ts'
import { STAND_IN_KEYS, verifyStandIn } from '#lib/prover/stand-in.ts'
import { loadVerifier, type Verify } from '#lib/prover/verifier.ts'
import type { VerificationKeys } from '#lib/wallet/prover.ts'

/** How the ledger's verifier checks proofs. */
export interface Proofs {
  /** @throws ProofUnchecked, or ProverError for a proof on which the verifier failed twice */
  readonly verify: Verify
  /** Loads the verifier at the first call. */
  ready(): Promise<void>
  /** The keys in the verifier registry from the first ledger; zeros if it accepts stand-ins. */
  readonly keys: VerificationKeys
}

export type ProofMode = 'real' | 'stand-in'

/** The proof was not verified, because the verifier failed or is still loading. Verifying it again may succeed. */
export class ProofUnchecked extends Error {
  override name = 'ProofUnchecked'
}

/** The size of the cache. A proof is simulated twice and applied once, within seconds. */
const REMEMBERED = 4_096

/** @throws ProverError if this project's verification keys or reference string are missing or damaged */
export async function openProofs(mode: ProofMode): Promise<Proofs> {
  if (mode === 'stand-in') return { keys: STAND_IN_KEYS, verify: verifyStandIn, ready: async () => undefined }
  const keys = await readVerificationKeys(EMBEDDED_CIRCUITS)
  const { g2 } = await readEmbeddedString()
  return { keys, ...loadWhenNeeded(() => loadVerifier({ g2 })) }
}

/** Loads a verifier when it is first needed, and again after a failure, which may have damaged its memory. */
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
    // The next ledger needs a verifier. If the load fails, the next verification starts another.
    ready().catch(() => undefined)
  }
  const verify: Verify = (...input) => {
    if (!loaded) {
      ready().catch(() => undefined)
      throw new ProofUnchecked('the proof verifier is not loaded')
    }
    try {
      return loaded(...input)
    } catch (cause) {
      replace()
      throw cause
    }
  }
  return { verify: rememberVerdicts(verify), ready }
}

/**
 * Verifies each proof once, and caches the result by the digest of its inputs. If the verifier fails on a proof, the proof is
 * tried once more, since an earlier proof may have damaged the verifier.
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
    const earlier = verdicts.get(digest)
    if (typeof earlier === 'boolean') return earlier
    if (earlier instanceof Error) throw earlier
    try {
      const verdict = verify(circuit, inputs, proof, key)
      remember(digest, verdict)
      return verdict
    } catch (cause) {
      if (cause instanceof ProofUnchecked) throw cause
      const fault = cause instanceof Error ? cause : new Error(String(cause))
      remember(digest, earlier === 'failed' ? fault : 'failed')
      if (earlier === 'failed') throw fault
      throw new ProofUnchecked('the proof verifier failed', { cause })
    }
  }
}
