import { AsyncLocalStorage } from 'node:async_hooks'

/** The fields of a log line: ids, hashes, reasons, counts. Envelopes, tokens, keys and amounts are never logged. */
type LogFields = Record<string, string | number | boolean | undefined>

// A build bundles this file twice, for the boot and for the routes, and both write the lines of one request.
const shared = globalThis as { payrollLogFields?: AsyncLocalStorage<LogFields> }
shared.payrollLogFields ??= new AsyncLocalStorage()
const current = shared.payrollLogFields

/** Runs `work` with `fields` in every line that it logs. */
export function withLogFields<Result>(fields: LogFields, work: () => Result): Result {
  return current.run(fields, work)
}

/** Writes one JSON line to standard output (`info`) or standard error (`error`). */
export function log(level: 'info' | 'error', event: string, fields: LogFields = {}): void {
  const line = JSON.stringify({ time: new Date().toISOString(), level, event, ...current.getStore(), ...fields })
  if (level === 'error') console.error(line)
  else console.log(line)
}

/**
 * The whole of a failure for the log: its stack and those of its causes. A thrown plain object, as the Stellar SDK
 * throws JSON-RPC errors, is shown by its code and message alone.
 */
export function describeFailure(failure: unknown): string {
  if (failure instanceof Error) {
    const own = withoutParameters(failure)
    return failure.cause === undefined ? own : `${own}\ncaused by ${describeFailure(failure.cause)}`
  }
  if (typeof failure === 'object' && failure !== null) {
    const { code, message } = failure as { code?: unknown; message?: unknown }
    return `${String(code)}: ${String(message)}`
  }
  return String(failure)
}

/** A database error repeats the query's parameters in its message, and they may hold what must not be logged. */
function withoutParameters(failure: Error): string {
  const { stack = String(failure), message } = failure
  const withMessage = (told: string) => (stack.includes(message) ? stack.replace(message, () => told) : told)
  // PostgreSQL quotes a value that does not fit its type (SQLSTATE class 22).
  if ('severity' in failure && 'code' in failure) {
    const code = String(failure.code)
    return withMessage(code.startsWith('22') ? code : `${code}: ${message}`)
  }
  return 'params' in failure && 'query' in failure ? withMessage(`Failed query: ${String(failure.query)}`) : stack
}
