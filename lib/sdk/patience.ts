import { PayrollError } from './payroll-error.ts'

/** The codes of errors that pass: the same request may be sent again as it is. */
const PASSING: ReadonlySet<string> = new Set([
  ...['network', 'unavailable', 'busy', 'internal', 'rate-limited', 'transfer-open', 'archive-unavailable'],
  ...['reconciling', 'idempotency-key-in-use'],
])

/** A proxy in front of the service answers with these, and without a code. */
const GATEWAY: ReadonlySet<number> = new Set([502, 503, 504])

/** Whether an error says nothing about the request: the network failed, or the service or the ledger cannot answer now. */
export function isTransient(error: unknown): boolean {
  if (error instanceof Error && lasting.has(error)) return false
  if (error instanceof PayrollError && GATEWAY.has(error.status) && error.code === 'unknown') return true
  // A fetch that gets no response throws a TypeError, in every browser and in Node, each with words of its kind.
  if (error instanceof TypeError) return /fetch|network|load failed|terminated/i.test(error.message)
  return error instanceof Error && 'code' in error && PASSING.has(String(error.code))
}

/** Errors whose default number of attempts is used up: an outer `patiently` does not retry them. */
const lasting = new WeakSet<Error>()

/** How often a request is repeated, and the pauses (ms), which double up to the last. */
const ATTEMPTS = 12
const PAUSES = { first: 250, last: 10_000 }

/** The longest pause that a service may ask for (ms). */
const LONGEST_ASKED = 60_000

/**
 * Repeats a request that may be repeated as it is, as long as its errors pass. By default for about a minute; each further attempt
 * takes ten seconds.
 * @throws the reason of `signal`
 */
export async function patiently<Result>(
  request: () => Promise<Result>,
  { attempts = ATTEMPTS, signal }: { attempts?: number; signal?: AbortSignal | undefined } = {},
): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    signal?.throwIfAborted()
    try {
      return await request()
    } catch (error) {
      if (!isTransient(error)) throw error
      if (attempt === attempts) {
        if (error instanceof Error && attempts >= ATTEMPTS) lasting.add(error)
        throw error
      }
      const asked = error instanceof PayrollError ? (error.retryAfter ?? 0) * 1000 : 0
      const ms = Math.max(Math.min(LONGEST_ASKED, asked), Math.min(PAUSES.last, PAUSES.first * 2 ** (attempt - 1)))
      await pause(ms, signal)
    }
  }
}

/** Waits this long (ms). @throws the reason of `signal` */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted()
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  const stop = () => resolve()
  signal?.addEventListener('abort', stop)
  await promise
  clearTimeout(timer)
  signal?.removeEventListener('abort', stop)
  signal?.throwIfAborted()
}
