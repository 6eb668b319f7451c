import type { Prover } from '#lib/wallet/prover.ts'

/** How long the remaining proofs of a process may take, by those it has generated. */
export interface ProofTimes {
  /** Performs `work`, which generates a proof; the time it waits for an earlier one is not counted. */
  measure<Result>(work: () => Promise<Result>): Promise<Result>
  /** ', about 12 s left' for `count` proofs; empty before the first one is generated */
  describeLeft(count: number): string
}

/** The estimate is a mean in which the newest proof weighs as much as all earlier ones together. */
export function openProofTimes(now: () => number = () => performance.now()): ProofTimes {
  let meanMs: number | undefined
  let lastEnd = 0
  return {
    measure: async (work) => {
      const began = now()
      const result = await work()
      const ended = now()
      const ms = ended - Math.max(began, lastEnd)
      lastEnd = ended
      meanMs = meanMs === undefined ? ms : (meanMs + ms) / 2
      return result
    },
    describeLeft: (count) =>
      meanMs === undefined || count < 1 ? '' : `, about ${Math.max(1, Math.round((meanMs * count) / 1_000))} s left`,
  }
}

/** Announces each of `total` proofs before it is generated, and from the second one the estimated time for the rest. */
export function announceProofs(prover: Prover, total: number, say: (line: string) => void, now?: () => number): Prover {
  const times = openProofTimes(now)
  let last: Promise<unknown> = Promise.resolve()
  let made = 0
  const proveNext: Prover['prove'] = async (statement) => {
    say(`proving ${made + 1} of ${Math.max(total, made + 1)}${times.describeLeft(total - made)}`)
    const proof = await times.measure(() => prover.prove(statement))
    made += 1
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
