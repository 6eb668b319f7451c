import { Refusal } from '#lib/refusal/refusal.ts'
import { clientOf } from './client-address.ts'

/**
 * How many requests a client may send each second, by kind, and ten times as many at once. `user` is for callers with a
 * session, and counts users; the other kinds count addresses. Of `drawn-password`, each try may succeed, so that this
 * limit bounds how fast an attacker can guess.
 */
const PER_SECOND = { page: 30, password: 30, 'drawn-password': 3, session: 30, archive: 20, user: 50 }
const BURST_SECONDS = 10
/** At most this many clients are remembered. The one that has been quiet longest is forgotten first. */
const MOST_CLIENTS = 20_000

interface Allowance {
  left: number
  /** when `left` was counted, in milliseconds */
  at: number
}

// A build may bundle the routes apart, so what they share hangs on the process.
const shared = globalThis as { payrollAllowances?: Map<string, Allowance> }

/** Each kind is counted apart: a client that has used up its tries at the password still sees the sign-in page. */
type Kind = keyof typeof PER_SECOND

/**
 * Limits how often one client may request pages and operations that need no session, before anything is read or computed
 * for it. Each process counts for itself.
 * @throws Refusal `rate-limited`
 */
export function requireRequestLeft(headers: Headers, kind: Exclude<Kind, 'user'>, now = performance.now()): void {
  const client = clientOf(headers)
  if (client !== undefined) requireLeft(kind, client, 'too many requests from this address', now)
}

/**
 * Limits how often one user may send requests.
 * @throws Refusal `rate-limited`
 */
export function requireUserRequestLeft(user: string, now = performance.now()): void {
  requireLeft('user', user, 'too many requests from this user', now)
}

function requireLeft(kind: Kind, client: string, message: string, now: number): void {
  shared.payrollAllowances ??= new Map()
  const wait = takeRequest(shared.payrollAllowances, `${kind} ${client}`, now, PER_SECOND[kind])
  if (wait > 0) throw new Refusal('rate-limited', message, { retryAfter: wait })
}

/**
 * Counts one request of `client`. Answers 0 if it is allowed, or the seconds until one is. Changes nothing but
 * `allowances`.
 */
export function takeRequest(
  allowances: Map<string, Allowance>,
  client: string,
  now: number,
  perSecond = PER_SECOND.session,
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
