import { hostError } from './host-error.ts'

/** The instructions of one host function. */
export interface Budget {
  /** @throws Error(Budget, ExceededLimit) */
  spend(instructions: number): void
  used(): number
}

export function openBudget(limit: number): Budget {
  let used = 0
  return {
    spend(instructions) {
      used += instructions
      if (used > limit) {
        throw hostError('Budget', 'ExceededLimit', `needs at least ${used} instructions, the limit is ${limit}`)
      }
    },
    used: () => used,
  }
}
