import { isEmail } from '#lib/text/plain-text.ts'
import type { ProviderSettings } from './provider.ts'

/**
 * Returns the email among `claims` if the provider has verified it: `<claim>_verified`, or `email_verified` for a custom
 * claim without such a sibling, is `true` and not the string.
 */
export function verifiedEmail(
  { emailClaim }: Pick<ProviderSettings, 'emailClaim'>,
  claims: Record<string, unknown>,
): { email?: string } {
  const email = claims[emailClaim]
  const verified = claims[`${emailClaim}_verified`] ?? claims.email_verified
  if (verified !== true || typeof email !== 'string') return {}
  return isEmail(email) ? { email } : {}
}
