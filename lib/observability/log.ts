import { AsyncLocalStorage } from 'node:async_hooks'
import { inspect, stripVTControlCharacters } from 'node:util'

/** The fields of a log line: IDs, hashes, reasons, counts. Envelopes, tokens, keys and amounts are never logged. */
type LogFields = Record<string, string | number | boolean | undefined>

type Level = 'info' | 'error'

// A build bundles this file twice, for the boot and for the routes, and both write the lines of one request.
const shared = globalThis as {
  payrollLogFields?: AsyncLocalStorage<LogFields>
  payrollConsole?: Pick<Console, 'log' | 'error'>
}
shared.payrollLogFields ??= new AsyncLocalStorage()
const current = shared.payrollLogFields

/** Runs `work` with `fields` in every line that it logs. */
export function withLogFields<Result>(fields: LogFields, work: () => Result): Result {
  return current.run(fields, work)
}

/** Writes one JSON line to standard output (`info`) or standard error (`error`). Long fields are cut. */
export function log(level: Level, event: string, fields: LogFields = {}): void {
  const line = serialize({ time: new Date().toISOString(), level, event, ...current.getStore(), ...fields })
  const output = shared.payrollConsole ?? console
  if (level === 'error') output.error(line)
  else output.log(line)
}

const MAX_LINE_BYTES = 4096

/** The entry as JSON, with its texts halved until the line fits. */
function serialize(entry: LogFields): string {
  let line = JSON.stringify(entry)
  for (let length = 2048; length > 0 && Buffer.byteLength(line) > MAX_LINE_BYTES; length = Math.floor(length / 2)) {
    line = JSON.stringify(entry, (_, value) =>
      typeof value === 'string' && value.length > length ? `${value.slice(0, length)}…` : value,
    )
  }
  return line
}

const LEVELS = { log: 'info', info: 'info', debug: 'info', warn: 'error', error: 'error' } as const

/**
 * Turns everything that Next, Node and libraries print from now on into log lines. Next prints the error of a page, causes
 * included, before it calls `onRequestError`, and the cause of a database error contains the query's parameters.
 */
export function captureConsole(): () => void {
  const { log: info, error } = console
  const methods = { ...console }
  shared.payrollConsole = { log: info.bind(console), error: error.bind(console) }
  for (const [method, level] of Object.entries(LEVELS) as [keyof typeof LEVELS, Level][]) {
    console[method] = (...parts: unknown[]) => log(level, 'console', { message: parts.map(describePart).join(' ') })
  }
  const listeners = process.listeners('warning')
  const warn = (warning: Error) => log('error', 'warning', { failure: describeFailure(warning) })
  process.removeAllListeners('warning')
  process.on('warning', warn)
  return () => {
    for (const method of Object.keys(LEVELS) as (keyof typeof LEVELS)[]) console[method] = methods[method]
    delete shared.payrollConsole
    process.off('warning', warn)
    for (const listener of listeners) process.on('warning', listener)
  }
}

function describePart(part: unknown): string {
  if (typeof part === 'string') return stripVTControlCharacters(part).trim()
  return part instanceof Error ? describeFailure(part) : inspect(part, { depth: 1 })
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
