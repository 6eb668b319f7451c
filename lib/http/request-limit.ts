import { BurstyRateLimiter, RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible'
import { perProcess } from '#lib/observability/per-process.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { clientOf } from './client-address.ts'

/**
 * How many requests a client may send per second, by kind. A burst may be ten times as large. `user` counts users, the other
 * kinds count addresses. A `drawn-password` skips the wait after wrong passwords, so only this limit bounds
 * how fast an attacker can guess.
 */
const PER_SECOND = { page: 30, password: 30, 'drawn-password': 3, session: 30, archive: 20, user: 50 }
const BURST_SECONDS = 10

/** Kinds are counted separately: a client with no password attempts left still sees the sign-in page. */
type Kind = keyof typeof PER_SECOND

const limiterOf = (kind: Kind) =>
  perProcess(`requests ${kind}`, () => {
    const points = PER_SECOND[kind]
    // A burst begins with the requests of its first second.
    const burst = { points: points * (BURST_SECONDS - 1), duration: BURST_SECONDS }
    return new BurstyRateLimiter(new RateLimiterMemory({ points, duration: 1 }), new RateLimiterMemory(burst))
  })

/**
 * Limits how often one client may request pages and operations that need no session, before anything is read or
 * computed for it. Each process counts separately.
 * @throws Refusal `rate-limited`
 */
export async function requireRequestLeft(headers: Headers, kind: Exclude<Kind, 'user'>): Promise<void> {
  const client = clientOf(headers)
  if (client !== undefined) await count(kind, client, 'too many requests from this address')
}

/**
 * Limits how often one user may send requests.
 * @throws Refusal `rate-limited`
 */
export const requireUserRequestLeft = (user: string): Promise<void> =>
  count('user', user, 'too many requests from this user')

async function count(kind: Kind, client: string, message: string): Promise<void> {
  await limiterOf(kind)
    .consume(client)
    .catch(({ msBeforeNext }: RateLimiterRes) => {
      throw new Refusal('rate-limited', message, { retryAfter: Math.max(1, Math.ceil(msBeforeNext / 1000)) })
    })
}
