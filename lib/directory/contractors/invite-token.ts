import { createHmac, timingSafeEqual } from 'node:crypto'

export interface InviteSettings {
  /** the key of the tokens, 32 bytes */
  secret: Uint8Array
  /** the URL of an invite, without the token at its end */
  page: string
  /** the maximum number of invites to mail for one organisation in 24 hours */
  daily: number
}

const VALID_DAYS = 14

/** Returns when an invite issued at `now` expires. */
export function inviteExpiry(now: Date): Date {
  return new Date(now.getTime() + VALID_DAYS * 24 * 60 * 60 * 1000)
}

/** The invite that a token names: the contractor's id, and a number that each new invite increments. */
export interface InviteName {
  contractor: string
  version: number
}

const ID_BYTES = 16
const NAME_BYTES = ID_BYTES + 4
const SEAL_BYTES = 32

/**
 * Returns the token of an invite: contractor id, version, and the HMAC-SHA-256 of both, base64url. Tokens are derived
 * when they are needed and never stored.
 */
export function inviteToken(secret: Uint8Array, { contractor, version }: InviteName): string {
  const name = Buffer.alloc(NAME_BYTES)
  name.write(contractor.replaceAll('-', ''), 'hex')
  name.writeUInt32BE(version, ID_BYTES)
  return Buffer.concat([name, seal(secret, name)]).toString('base64url')
}

/** Returns the invite that `token` names, or undefined if its HMAC is wrong. The invite may be void or expired. */
export function readInviteToken(secret: Uint8Array, token: string): InviteName | undefined {
  const bytes = Buffer.from(token, 'base64url')
  // Decoding skips invalid characters and trailing bits. Encoding again makes sure that a token has only one spelling.
  if (bytes.length !== NAME_BYTES + SEAL_BYTES || bytes.toString('base64url') !== token) return undefined
  const name = bytes.subarray(0, NAME_BYTES)
  if (!timingSafeEqual(bytes.subarray(NAME_BYTES), seal(secret, name))) return undefined
  const hex = name.toString('hex', 0, ID_BYTES)
  return { contractor: hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'), version: name.readUInt32BE(ID_BYTES) }
}

function seal(secret: Uint8Array, name: Uint8Array): Buffer {
  return createHmac('sha256', secret).update(name).digest()
}
