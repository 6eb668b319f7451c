import { requireSecret } from './shared-secret.ts'

/**
 * Lets a scheduler in that sends `Authorization: Bearer <CRON_SECRET>`.
 * @throws Refusal `unauthenticated`; `not-wired` when there is no such secret
 */
export function requireScheduler(secret: string | undefined, request: Request): void {
  requireSecret(secret, request, {
    code: 'cron-not-configured',
    unset: 'no CRON_SECRET is configured',
    wrong: 'invalid scheduler token',
  })
}
