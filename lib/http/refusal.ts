/** Every way in which a request can be refused. The HTTP status comes from one table, in `lib/http/resource.ts`. */
export const REFUSAL_CODES = [
  'malformed',
  'unauthenticated',
  'forbidden',
  'not-found',
  'conflict',
  'too-large',
  'unsupported-media',
  'refused',
  'too-soon',
  'failed',
  'not-wired',
  'unavailable',
] as const

export type RefusalCode = (typeof REFUSAL_CODES)[number]

class OwnRefusal extends Error {
  readonly code: RefusalCode
  /** Seconds after which another try makes sense; becomes the Retry-After header. */
  readonly retryAfter: number | undefined

  constructor(code: RefusalCode, message: string, options: { cause?: unknown; retryAfter?: number } = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.name = 'Refusal'
    this.code = code
    this.retryAfter = options.retryAfter
  }
}

const shared = globalThis as { payrollRefusal?: typeof OwnRefusal }
shared.payrollRefusal ??= OwnRefusal

/**
 * The one error that a caller is meant to see: `message` goes out as `{ error }`, `cause` only into the log.
 * Whatever else is thrown is a bug and is answered with a fixed 500.
 * A build bundles this file twice, for the boot, which opens what the routes use, and for the routes: the first class to
 * be loaded is everybody's.
 */
export const Refusal = shared.payrollRefusal
export type Refusal = OwnRefusal
