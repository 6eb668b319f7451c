import { prover } from '#lib/prover/stand-in.ts'
import type { Prover } from '#lib/wallet/prover.ts'

/** A prover whose proofs are counted, and can be withheld. */
interface WatchedProver {
  prover: Prover
  /** how many proofs have begun */
  count(): number
  /** resolves once the first proof that is withheld has begun */
  begun: Promise<void>
  /** Completes the proofs that are withheld. */
  release(): void
}

/** @param given.from the first proof that is withheld, counted from 1; by default none is */
export function watchProver({ from = Number.POSITIVE_INFINITY }: { from?: number } = {}): WatchedProver {
  const begun = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  let count = 0
  return {
    prover: {
      ...prover,
      prove: async (statement) => {
        count += 1
        if (count >= from) {
          begun.resolve()
          await released.promise
        }
        return await prover.prove(statement)
      },
    },
    count: () => count,
    begun: begun.promise,
    release: released.resolve,
  }
}
