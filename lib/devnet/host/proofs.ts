import { createHash } from 'node:crypto'
import { CIRCUIT_NAMES, type CircuitName, readVerificationKey } from '#lib/prover/circuits.ts'
import { EMBEDDED_CIRCUITS, EMBEDDED_STRING } from '#lib/prover/embedded.ts'
import { readReferenceString } from '#lib/prover/reference-string.ts'
import { STAND_IN_KEYS, verifyStandIn } from '#lib/prover/stand-in.ts'
import { loadVerifier, type Verify } from '#lib/prover/verifier.ts'

/** How the ledger's verifier checks proofs. */
export interface Proofs {
  readonly verify: Verify
  /** Loads what `verify` needs, at the first call. */
  ready(): Promise<void>
  /** What the verifier registry holds from the first ledger on; zeros where it takes stand-ins. */
  readonly keys: Readonly<Record<CircuitName, Uint8Array>>
}

export type ProofMode = 'real' | 'stand-in'

/** How many verdicts are remembered: a proof is simulated twice and applied once, within seconds. */
const REMEMBERED = 4_096

/** @throws ProverFault where the project's verification keys are missing */
export async function openProofs(mode: ProofMode): Promise<Proofs> {
  if (mode === 'stand-in') return { keys: STAND_IN_KEYS, verify: verifyStandIn, ready: async () => undefined }
  const read = CIRCUIT_NAMES.map(async (name) => [name, await readVerificationKey(EMBEDDED_CIRCUITS, name)])
  const keys = Object.fromEntries(await Promise.all(read)) as Record<CircuitName, Uint8Array>
  let loading: Promise<void> | undefined
  let loaded: Verify | undefined
  const load = async () => {
    loaded = await loadVerifier(await readReferenceString(EMBEDDED_STRING))
  }
  const verify: Verify = (...given) => {
    if (!loaded) throw new Error('the verifier of proofs is not loaded')
    return loaded(...given)
  }
  return {
    keys,
    verify: rememberVerdicts(verify),
    ready: () => {
      loading ??= load().catch((cause) => {
        loading = undefined
        throw cause
      })
      return loading
    },
  }
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
