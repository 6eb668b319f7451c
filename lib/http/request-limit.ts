import { perProcess } from '#lib/observability/per-process.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { clientOf } from './client-address.ts'

/**
 * How many requests a client may send per second, by kind. A burst may be ten times as large. `user` counts users, the
 * other kinds count addresses. A `drawn-password` skips the wait after wrong passwords, so only this limit bounds how
 * fast an attacker can guess.
 */
const PER_SECOND = { page: 30, password: 30, 'drawn-password': 3, session: 30, archive: 20, user: 50 }
const BURST_SECONDS = 10
/** How many clients are remembered. The client that has been idle longest is forgotten first. */
const MAX_CLIENTS = 20_000

interface Allowance {
  left: number
  /** when `left` was counted, in milliseconds */
  at: number
}

const requests = perProcess('request allowances', () => new Map<string, Allowance>())

/** Kinds are counted separately: a client with no password attempts left still sees the sign-in page. */
type Kind = keyof typeof PER_SECOND

/**
 * Limits how often one client may request pages and operations that need no session, before anything is read or
 * computed for it. Each process counts separately.
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
  const wait = takeRequest(requests, `${kind} ${client}`, now, PER_SECOND[kind])
  if (wait > 0) throw new Refusal('rate-limited', message, { retryAfter: wait })
}

/**
 * Counts a request from `client` in `allowances`.
 * @returns 0 if the request is allowed, else the seconds until the next one is
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
  // A Map keeps the order of insertion, so this client becomes the last.
  allowances.delete(client)
  allowances.set(client, { left: isAllowed ? left - 1 : left, at: now })
  const [oldest] = allowances.size > MAX_CLIENTS ? allowances.keys() : []
  if (oldest !== undefined) allowances.delete(oldest)
  return isAllowed ? 0 : Math.max(1, Math.ceil((1 - left) / perSecond))
}
