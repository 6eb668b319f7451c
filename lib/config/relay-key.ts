import { generateKeyPairSync } from 'node:crypto'
import { z } from 'zod'
import { parseJson } from '#lib/text/json.ts'

const coordinate = z.string().regex(/^[A-Za-z0-9_-]{43}$/)
const EC = z.object({ kty: z.literal('EC'), crv: z.literal('P-256'), x: coordinate, y: coordinate })
/** A P-256 private key as a JWK. */
export const PRIVATE_RELAY_KEY = EC.extend({ d: coordinate })

/** The key that amounts are encrypted to: a P-256 public key as a JWK without additional fields. */
export type PublicRelayKey = z.output<typeof EC>
/** The key that decrypts the amounts. Only relays have it. */
export type PrivateRelayKey = z.output<typeof PRIVATE_RELAY_KEY>

/** Parses a JWK; undefined if `text` is not one. */
export const parsePublicRelayKey = (text: string): PublicRelayKey | undefined => EC.safeParse(parseJson(text)).data
export const parsePrivateRelayKey = (text: string): PrivateRelayKey | undefined =>
  PRIVATE_RELAY_KEY.safeParse(parseJson(text)).data

export function publicHalf({ kty, crv, x, y }: PrivateRelayKey): PublicRelayKey {
  return { kty, crv, x, y }
}

export function generateRelayKey(): PrivateRelayKey {
  return PRIVATE_RELAY_KEY.parse(
    generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' }),
  )
}
