import { Refusal } from '#lib/refusal/refusal.ts'

/**
 * Whether this is drizzle's error around that of a driver. Checks its fields instead of its class, because a build
 * bundles drizzle's classes more than once.
 */
const isQueryError = (error: unknown): error is Error => error instanceof Error && 'query' in error && 'params' in error

/** The SQLSTATE of a failed query; undefined for any other error. */
export function sqlState(error: unknown): string | undefined {
  const cause = isQueryError(error) ? error.cause : error
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  // EPIPE also has five letters, but no class of SQLSTATE begins with E.
  return typeof code === 'string' && /^[0-9A-DF-Z][0-9A-Z]{4}$/.test(code) ? code : undefined
}

/** The name of the constraint that a failed query violated. */
export function violatedConstraint(error: unknown): string | undefined {
  const cause = isQueryError(error) ? error.cause : error
  const name = cause instanceof Error && 'constraint' in cause ? cause.constraint : undefined
  return typeof name === 'string' ? name : undefined
}

/**
 * Whether the database could not be reached, as opposed to rejecting the query: SQLSTATE classes 08 (connection), 53
 * (resources) and 57 (shutdown, statement timeout), a lock or a transaction that took too long (55P03, 25P03), a replica or a
 * server after a failover, which only reads (25006), a database
 * that accepts no connections or doesn't exist (55000, 3D000), as during a restore from a backup, or a query that failed
 * without any state.
 */
export function isUnreachable(error: unknown): boolean {
  const state = sqlState(error)
  return state === undefined ? isQueryError(error) : /^(08|53|57|55P03|25P03|25006|55000|3D000)/.test(state)
}

/** The refusal for an unreachable database. */
export function unreachable(cause: unknown): Refusal {
  return new Refusal('unavailable', 'the database cannot be reached', { cause })
}

/** Maps an error for the caller: an unreachable database becomes a refusal, any other error is returned unchanged. */
export function databaseFailure(error: unknown): unknown {
  // Drizzle wraps the errors that its client throws, including the refusal to read for a client that has left.
  if (isQueryError(error) && error.cause instanceof Refusal) return error.cause
  return isUnreachable(error) ? unreachable(error) : error
}

/** The reason for a failure in one line for the terminal: the message of the innermost cause, which contains no query. */
export function innermostReason(error: unknown): string {
  let failure = error
  while (failure instanceof Error && failure.cause !== undefined) failure = failure.cause
  // A host name with several addresses causes one error for each; the first is enough.
  const [first] = failure instanceof AggregateError ? failure.errors : []
  const { message, code } = Object(first ?? failure) as { message?: unknown; code?: unknown }
  return String(message || code || failure).split('\n', 1)[0] ?? ''
}
