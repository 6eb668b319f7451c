import type { Prover } from '#lib/wallet/prover.ts'

/** Announces each of `total` proofs before it is generated, and from the second one the estimated time for the rest. */
export function announceProofs(
  prover: Prover,
  total: number,
  say: (line: string) => void,
  now: () => number = Date.now,
): Prover {
  let last: Promise<unknown> = Promise.resolve()
  let made = 0
  let spentMs = 0
  const proveNext: Prover['prove'] = async (statement) => {
    const left = total - made
    const estimate = made === 0 ? '' : `, about ${Math.max(1, Math.round(((spentMs / made) * left) / 1_000))} s left`
    say(`proving ${made + 1} of ${Math.max(total, made + 1)}${left > 0 ? estimate : ''}`)
    const begun = now()
    const proof = await prover.prove(statement)
    made += 1
    spentMs += now() - begun
    return proof
  }
  return {
    ...prover,
    // The prover generates one proof at a time. Without this queue, the second would be announced during the first.
    prove: (statement) => {
      const proof = last.then(() => proveNext(statement))
      last = proof.catch(() => undefined)
      return proof
    },
  }
}
