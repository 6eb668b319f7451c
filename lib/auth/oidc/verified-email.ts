import { isEmail } from '#lib/text/plain-text.ts'
import type { ProviderSettings } from './provider.ts'

/**
 * The email address among `claims`, if the provider says that it is verified: `true` itself and not the text, in
 * `<claim>_verified`, or in `email_verified` where a custom claim has no such sibling.
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
