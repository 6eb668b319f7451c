import { AsyncLocalStorage } from 'node:async_hooks'
import { inspect, stripVTControlCharacters } from 'node:util'
import { perProcess } from './per-process.ts'
import { mapStack } from './source-maps.ts'

/** The fields of a log line: IDs, hashes, reasons, counts. Envelopes, tokens, keys and amounts are never logged. */
type LogFields = Record<string, string | number | boolean | undefined>

type Level = 'info' | 'error'

const current = perProcess('log fields', () => new AsyncLocalStorage<LogFields>())
const captured = perProcess('console', (): { console?: Pick<Console, 'log' | 'error'> } => ({}))
const format = perProcess('log format', () => ({ isReadable: false }))

/** Adds `fields` to every line that `work` logs. */
export function withLogFields<Result>(fields: LogFields, work: () => Result): Result {
  return current.run(fields, work)
}

/** The ID of the request that the current work belongs to; undefined for chores. */
export function currentRequestId(): string | undefined {
  const requestId = current.getStore()?.requestId
  return typeof requestId === 'string' ? requestId : undefined
}

/**
 * Writes a JSON line, or a readable one after `logReadably`, to standard output (`info`) or standard error (`error`).
 * Long fields of a JSON line are truncated.
 */
export function log(level: Level, event: string, fields: LogFields = {}): void {
  const entry = { time: new Date().toISOString(), level, event, ...current.getStore(), ...fields }
  const line = format.isReadable ? describeEntry(entry) : serialize(entry)
  const output = captured.console ?? console
  if (level === 'error') output.error(line)
  else output.log(line)
}

/**
 * Logs for a person at a terminal, until the returned function is called: a line per entry, followed by the lines of its
 * stack traces.
 */
export function logReadably(): () => void {
  format.isReadable = true
  return () => {
    format.isReadable = false
  }
}

/** Characters other than line ends and tabs that move a terminal's cursor, or change the order in which text is shown. */
const CONTROL = /(?![\n\t])[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu

function describeEntry({ time, level, event, ...fields }: LogFields): string {
  const parts = Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : `${name}=${value}`))
  const line = [String(time).slice(11, 19), ...(level === 'error' ? ['ERROR'] : []), event, ...parts].join(' ')
  return stripVTControlCharacters(line).replace(CONTROL, '')
}

const MAX_LINE_BYTES = 4096

/** The entry as JSON. Strings are truncated until the line fits. */
function serialize(entry: LogFields): string {
  let line = JSON.stringify(entry)
  for (let length = 2048; length > 0 && Buffer.byteLength(line) > MAX_LINE_BYTES; length = Math.floor(length / 2)) {
    line = JSON.stringify(entry, (_, value) =>
      typeof value === 'string' && value.length > length ? `${value.slice(0, length)}…` : value,
    )
  }
  // JSON leaves these as they are: U+009B begins a terminal's command.
  return line.replace(/[\u007f-\u009f]/g, (character) => `\\u00${character.charCodeAt(0).toString(16)}`)
}

const LEVELS = { log: 'info', info: 'info', debug: 'info', warn: 'error', error: 'error' } as const

/**
 * Turns everything that Next, Node and libraries print into log lines, until the returned function is called. Next prints
 * a page's error with its causes before it calls `onRequestError`, and the cause of a database error contains the query's
 * parameters.
 */
export function captureConsole(): () => void {
  const { log: info, error } = console
  const methods = { ...console }
  captured.console = { log: info.bind(console), error: error.bind(console) }
  for (const [method, level] of Object.entries(LEVELS) as [keyof typeof LEVELS, Level][]) {
    console[method] = (...parts: unknown[]) => log(level, 'console', { message: parts.map(describePart).join(' ') })
  }
  const listeners = process.listeners('warning')
  const warn = (warning: Error) => log('error', 'warning', { failure: describeFailure(warning) })
  process.removeAllListeners('warning')
  process.on('warning', warn)
  return () => {
    for (const method of Object.keys(LEVELS) as (keyof typeof LEVELS)[]) console[method] = methods[method]
    delete captured.console
    process.off('warning', warn)
    for (const listener of listeners) process.on('warning', listener)
  }
}

function describePart(part: unknown): string {
  if (typeof part === 'string') return stripVTControlCharacters(part).trim()
  return part instanceof Error ? describeFailure(part) : inspect(part, { depth: 1 })
}

/**
 * Describes a failure for the log: its stack and those of its causes. Of a thrown plain object (the Stellar SDK throws
 * JSON-RPC errors this way), only code and message are included.
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

/** Removes the query's parameters from a database error: they may contain secrets. */
function withoutParameters(failure: Error): string {
  const { message } = failure
  const stack = mapStack(failure.stack ?? String(failure))
  const withMessage = (replacement: string) =>
    stack.includes(message) ? stack.replace(message, () => replacement) : replacement
  // PostgreSQL quotes a value that does not fit its type (SQLSTATE class 22).
  if ('severity' in failure && 'code' in failure) {
    const code = String(failure.code)
    return withMessage(code.startsWith('22') ? code : `${code}: ${message}`)
  }
  return 'params' in failure && 'query' in failure ? withMessage(`Failed query: ${String(failure.query)}`) : stack
}

const MAX_FAILURES = 1_000

/**
 * Runs work that is retried later if it fails. An outage is reported once: a failure is passed to `report` only if it
 * differs from the last one of the same `subject`. Resolves to whether the work succeeded.
 */
export function openAttempts(
  report: (subject: string, failure: string) => void,
): (subject: string, work: () => Promise<unknown>) => Promise<boolean> {
  const failures = new Map<string, string>()
  return async (subject, work) => {
    try {
      await work()
      failures.delete(subject)
      return true
    } catch (error) {
      const failure = describeFailure(error)
      if (failures.get(subject) !== failure) report(subject, failure)
      // Some subjects never succeed here, because another process has finished their work.
      if (failures.size >= MAX_FAILURES) failures.clear()
      failures.set(subject, failure)
      return false
    }
  }
}
