/** What may be logged: ids, hashes, reasons, counts. Never envelopes, tokens, keys or amounts. */
export type LogFields = Record<string, string | number | boolean | undefined>

/** Writes one JSON line to standard output (`info`) or standard error (`error`). */
export function log(level: 'info' | 'error', event: string, fields: LogFields = {}): void {
  const line = JSON.stringify({ time: new Date().toISOString(), level, event, ...fields })
  if (level === 'error') console.error(line)
  else console.log(line)
}

/**
 * The whole of a failure for the log: its stack and those of its causes. A thrown plain object, as the Stellar SDK
 * throws JSON-RPC errors, is shown by its code and message alone.
 */
export function describeFailure(failure: unknown): string {
  if (failure instanceof Error) {
    // A database error repeats the query's parameters in its message, and they may hold what must not be logged.
    const own = 'params' in failure && 'query' in failure ? `Failed query: ${String(failure.query)}` : failure.stack
    return failure.cause === undefined ? String(own) : `${own}\ncaused by ${describeFailure(failure.cause)}`
  }
  if (typeof failure === 'object' && failure !== null) {
    const { code, message } = failure as { code?: unknown; message?: unknown }
    return `${String(code)}: ${String(message)}`
  }
  return String(failure)
}
