import { Refusal } from '#lib/refusal/refusal.ts'

/**
 * The token of `Authorization: Bearer <token>` (RFC 6750 §2.1). The scheme is case-insensitive.
 * @throws Refusal `bearer-missing`
 */
export function readBearer(request: Request): string {
  const [, token] = request.headers.get('authorization')?.match(/^bearer +(\S.*)$/i) ?? []
  if (token === undefined) throw new Refusal('bearer-missing')
  return token
}
