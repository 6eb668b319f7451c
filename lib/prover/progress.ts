import type { Prover } from '#lib/wallet/prover.ts'

/** Estimates the time for the remaining proofs from those generated so far. */
interface ProofTimes {
  /** Performs `work`, which generates a proof; the time it waits for an earlier one is not counted. */
  measure<Result>(work: () => Promise<Result>): Promise<Result>
  /** 'about 12 s left' for `count` proofs; undefined before the first one is generated */
  describeLeft(count: number): string | undefined
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
      meanMs === undefined || count < 1
        ? undefined
        : `about ${Math.max(1, Math.round((meanMs * count) / 1_000))} s left`,
  }
}

/** Announces each of `total` proofs before it is generated, and from the second one the estimated time for the rest. */
export function announceProofs(prover: Prover, total: number, say: (line: string) => void, now?: () => number): Prover {
  const times = openProofTimes(now)
  let last: Promise<unknown> = Promise.resolve()
  let made = 0
  const proveNext: Prover['prove'] = async (statement) => {
    const left = times.describeLeft(total - made)
    say(`proving ${made + 1} of ${Math.max(total, made + 1)}${left ? `, ${left}` : ''}`)
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
