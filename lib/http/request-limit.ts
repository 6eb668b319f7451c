import { Refusal } from '#lib/refusal/refusal.ts'
import { clientOf } from './client-address.ts'

/** How many requests a client may make each second, and how many seconds' worth of them at once. */
const PER_SECOND = 30
const BURST_SECONDS = 10
/**
 * The same for tries at the password that skip the wait: only this limit bounds how fast an attacker can guess with
 * them.
 */
const DRAWN_PER_SECOND = 3
const PER_SECOND_OF: Partial<Record<Kind, number>> = { 'drawn-password': DRAWN_PER_SECOND, archive: 20 }
/** At most this many clients are remembered. The one that has been quiet longest is forgotten first. */
const MOST_CLIENTS = 20_000

interface Allowance {
  left: number
  /** when `left` was counted, in milliseconds */
  at: number
}

// A build may bundle the routes apart, so what they share hangs on the process.
const shared = globalThis as { payrollAllowances?: Map<string, Allowance> }

/** Each kind has a count of its own: a client that has used up its tries at the password still sees the sign-in page. */
type Kind = 'page' | 'password' | 'drawn-password' | 'session' | 'archive'

/**
 * Limits how often one client may ask for pages and operations that need no session. A client beyond the limit is refused
 * before anything is read or computed for it. Each process counts for itself.
 * @throws Refusal `rate-limited`
 */
export function requireRequestLeft(headers: Headers, kind: Kind, now = performance.now()): void {
  const client = clientOf(headers)
  if (client === undefined) return
  shared.payrollAllowances ??= new Map()
  const wait = takeRequest(shared.payrollAllowances, `${kind} ${client}`, now, PER_SECOND_OF[kind] ?? PER_SECOND)
  if (wait === 0) return
  throw new Refusal('rate-limited', 'too many requests from this address', { retryAfter: wait })
}

/**
 * Counts one request of `client`. Answers 0 if it is allowed, or the seconds until one is. Changes nothing but
 * `allowances`.
 */
export function takeRequest(
  allowances: Map<string, Allowance>,
  client: string,
  now: number,
  perSecond = PER_SECOND,
): number {
  const most = perSecond * BURST_SECONDS
  const { left: before, at } = allowances.get(client) ?? { left: most, at: now }
  const left = Math.min(most, before + ((now - at) / 1000) * perSecond)
  const isAllowed = left >= 1
  // A Map keeps the order of insertion, so the client that was seen last stands last.
  allowances.delete(client)
  allowances.set(client, { left: isAllowed ? left - 1 : left, at: now })
  const [oldest] = allowances.size > MOST_CLIENTS ? allowances.keys() : []
  if (oldest !== undefined) allowances.delete(oldest)
  return isAllowed ? 0 : Math.max(1, Math.ceil((1 - left) / perSecond))
}
