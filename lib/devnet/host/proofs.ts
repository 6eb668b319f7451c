import { createHash } from 'node:crypto'
import { CIRCUIT_NAMES, type CircuitName, readVerificationKey } from '#lib/prover/circuits.ts'
import { EMBEDDED_CIRCUITS, readEmbeddedString } from '#lib/prover/embedded.ts'
import { STAND_IN_KEYS, verifyStandIn } from '#lib/prover/stand-in.ts'
import { loadVerifier, type Verify } from '#lib/prover/verifier.ts'

/** How the ledger's verifier checks proofs. */
export interface Proofs {
  readonly verify: Verify
  /** Loads what `verify` needs, at the first call. */
  ready(): Promise<void>
  /** A ledger that closed meanwhile would fail what it cannot check. */
  isLoading(): boolean
  /** What the verifier registry holds from the first ledger on; zeros where it takes stand-ins. */
  readonly keys: Readonly<Record<CircuitName, Uint8Array>>
}

export type ProofMode = 'real' | 'stand-in'

/** How many verdicts are remembered: a proof is simulated twice and applied once, within seconds. */
const REMEMBERED = 4_096

/** @throws ProverFault where verification keys or the reference string of the project are missing or damaged */
export async function openProofs(mode: ProofMode): Promise<Proofs> {
  if (mode === 'stand-in')
    return { keys: STAND_IN_KEYS, verify: verifyStandIn, ready: async () => undefined, isLoading: () => false }
  const read = CIRCUIT_NAMES.map(async (name) => [name, await readVerificationKey(EMBEDDED_CIRCUITS, name)])
  const keys = Object.fromEntries(await Promise.all(read)) as Record<CircuitName, Uint8Array>
  const { g1, g2 } = await readEmbeddedString()
  // Of two megabytes the verifier needs the generator.
  const generator = Buffer.from(g1.subarray(0, 64))
  return { keys, ...loadWhenNeeded(() => loadVerifier({ g1: generator, g2 })) }
}

/** A verifier that is loaded at the first need, and anew after it failed: its memory may be damaged then. */
export function loadWhenNeeded(load: () => Promise<Verify>): Pick<Proofs, 'verify' | 'ready' | 'isLoading'> {
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
  const verify: Verify = (...given) => {
    if (!loaded) throw new Error('the verifier of proofs is not loaded')
    try {
      return loaded(...given)
    } catch (cause) {
      loaded = undefined
      loading = undefined
      // At once, so that the next ledger has one. What fails is tried again at the next request.
      ready().catch(() => undefined)
      throw cause
    }
  }
  return { verify: rememberVerdicts(verify), ready, isLoading: () => loading !== undefined && loaded === undefined }
}

/** Checks each proof once. A verdict is found by the digest of everything that it depends on. */
export function rememberVerdicts(verify: Verify): Verify {
  const verdicts = new Map<string, boolean>()
  return (circuit, inputs, proof, key) => {
    const hash = createHash('sha256').update(circuit)
    for (const part of [inputs, proof, key]) hash.update(`:${part.length}:`).update(part)
    const digest = hash.digest('base64')
    const known = verdicts.get(digest)
    if (known !== undefined) return known
    const verdict = verify(circuit, inputs, proof, key)
    verdicts.set(digest, verdict)
    const [oldest] = verdicts.keys()
    if (verdicts.size > REMEMBERED && oldest !== undefined) verdicts.delete(oldest)
    return verdict
  }
}
