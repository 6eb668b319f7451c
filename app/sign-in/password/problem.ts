import { databaseFailure } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'

/** The query that tells the sign-in page why a sign-in failed. Rethrows every error that isn't a refusal. */
export function problemOf(error: unknown): string {
  const failure = databaseFailure(error)
  if (!(failure instanceof Refusal)) throw error
  if (failure.code === 'unauthenticated') return 'problem=wrong'
  if (failure.code === 'too-soon' || failure.code === 'rate-limited')
    return `problem=wait&seconds=${failure.retryAfter}`
  return 'problem=unavailable'
}
