import { createHmac, timingSafeEqual } from 'node:crypto'

const DAYS = 14

/** When an invite that is issued at `now` expires. */
export function inviteEnd(now: Date): Date {
  return new Date(now.getTime() + DAYS * 24 * 60 * 60 * 1000)
}

/** The invite that a token stands for: its contractor, and the number of its issue. */
export interface InviteName {
  contractor: string
  version: number
}

const ID_BYTES = 16
const NAME_BYTES = ID_BYTES + 4
const SEAL_BYTES = 32

/**
 * The token of an invite: contractor id, version, and the HMAC-SHA-256 of both under `secret` (32 bytes), base64url.
 * The token is derived whenever it is needed, and stored nowhere.
 */
export function inviteToken(secret: Uint8Array, { contractor, version }: InviteName): string {
  const name = Buffer.alloc(NAME_BYTES)
  name.write(contractor.replaceAll('-', ''), 'hex')
  name.writeUInt32BE(version, ID_BYTES)
  return Buffer.concat([name, seal(secret, name)]).toString('base64url')
}

/** The invite that `token` names; undefined if this service did not sign it. The invite may be void or expired. */
export function readInviteToken(secret: Uint8Array, token: string): InviteName | undefined {
  const bytes = Buffer.from(token, 'base64url')
  // Only one spelling is accepted: decoding ignores foreign characters and the last bits of the last one.
  if (bytes.length !== NAME_BYTES + SEAL_BYTES || bytes.toString('base64url') !== token) return undefined
  const name = bytes.subarray(0, NAME_BYTES)
  if (!timingSafeEqual(bytes.subarray(NAME_BYTES), seal(secret, name))) return undefined
  const hex = name.toString('hex', 0, ID_BYTES)
  return { contractor: hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'), version: name.readUInt32BE(ID_BYTES) }
}

function seal(secret: Uint8Array, name: Uint8Array): Buffer {
  return createHmac('sha256', secret).update(name).digest()
}
