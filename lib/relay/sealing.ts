import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js'
import { CompactEncrypt, compactDecrypt, importJWK } from 'jose'
import { type PrivateRelayKey, type PublicRelayKey, publicHalf } from '#lib/config/relay-key.ts'
import type { LineId } from '#lib/transfers/line.ts'
import type { SyncedBalance } from '#lib/wallet/balance.ts'
import type { Opening } from '#lib/wallet/commitment.ts'
import { ORDER } from '#lib/wallet/grumpkin.ts'
import { AMOUNT_DIGITS, keyIdOf, type SealBinding } from '#lib/wallet/seal.ts'

// Plaintexts are padded, so that the length of a JWE reveals no amount: 2^127 has 39 digits, the group order 77.
const VALUE_DIGITS = 39
const BLINDING_DIGITS = ORDER.toString().length

/** Seals an amount (base units, at most 16 digits) to the relays: a JWE with ECDH-ES and A256GCM (RFC 7516, RFC 7518). */
export const sealAmount = (key: PublicRelayKey, { job, position }: LineId, amount: bigint): Promise<string> =>
  seal(key, { job, item: position }, amount.toString().padStart(AMOUNT_DIGITS, '0'))

/** The amount in base units. Throws if the JWE is for another line or another key. */
export const unsealAmount = async (key: PrivateRelayKey, { job, position }: LineId, sealed: string): Promise<bigint> =>
  BigInt(await unseal(key, { job, item: position }, sealed))

/** The amount of a run's payout in base units. Throws if the seal is for another payout, channel or key, or contains no amount. */
export async function unsealPayout(key: PrivateRelayKey, binding: SealBinding, sealed: string): Promise<bigint> {
  const { batch, contractor, spender } = binding
  const amount = await unseal(key, { kid: await keyIdOf(publicHalf(key)), batch, contractor, spender }, sealed)
  if (!/^\d{16}$/.test(amount) || BigInt(amount) === 0n) throw new Error('the seal holds no amount')
  return BigInt(amount)
}

/** Seals the opening of a channel's balance, bound to the channel. */
export const sealOpening = (key: PublicRelayKey, channel: string, opening: Opening): Promise<string> =>
  seal(key, { channel, holds: 'opening' }, encodeOpening(opening))

export const unsealOpening = async (key: PrivateRelayKey, channel: string, sealed: string): Promise<Opening> =>
  decodeOpening(await unseal(key, { channel, holds: 'opening' }, sealed))

/** Seals a channel's balance and the cursor of the events it was read from, bound to the channel. */
export function sealBalance(key: PublicRelayKey, channel: string, balance: SyncedBalance): Promise<string> {
  const { spendable, receiving, cursor } = balance
  return seal(key, { channel, holds: 'balance' }, `${encodeOpening(spendable)} ${encodeOpening(receiving)} ${cursor}`)
}

export async function unsealBalance(key: PrivateRelayKey, channel: string, sealed: string): Promise<SyncedBalance> {
  const parts = (await unseal(key, { channel, holds: 'balance' }, sealed)).split(' ')
  const [spendable = '', receiving = '', cursor = ''] = parts
  return { spendable: decodeOpening(spendable), receiving: decodeOpening(receiving), cursor }
}

/** Seals the key by which a channel's payments can be attributed, bound to the channel. */
export const sealMarkKey = (key: PublicRelayKey, channel: string, markKey: Uint8Array): Promise<string> =>
  seal(key, { channel, holds: 'mark key' }, bytesToHex(markKey))

export const unsealMarkKey = async (key: PrivateRelayKey, channel: string, sealed: string): Promise<Uint8Array> =>
  hexToBytes(await unseal(key, { channel, holds: 'mark key' }, sealed))

const encodeOpening = ({ value, blinding }: Opening): string =>
  `${value.toString().padStart(VALUE_DIGITS, '0')}:${blinding.toString().padStart(BLINDING_DIGITS, '0')}`

function decodeOpening(encoded: string): Opening {
  const [value = '', blinding = ''] = encoded.split(':')
  return { value: BigInt(value), blinding: BigInt(blinding) }
}

/** The fields of the protected header that bind a seal to its context. */
type Binding = Record<string, string | number>

async function seal(key: PublicRelayKey, binding: Binding, plaintext: string): Promise<string> {
  return await new CompactEncrypt(new TextEncoder().encode(plaintext))
    .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM', ...binding })
    .encrypt(await importJWK(key, 'ECDH-ES'))
}

async function unseal(key: PrivateRelayKey, binding: Binding, sealed: string): Promise<string> {
  const { plaintext, protectedHeader } = await compactDecrypt(sealed, await importJWK(key, 'ECDH-ES'), {
    keyManagementAlgorithms: ['ECDH-ES'],
    contentEncryptionAlgorithms: ['A256GCM'],
  })
  // An attacker who can write to the database could otherwise move an amount from one line to another.
  if (Object.entries(binding).some(([name, value]) => protectedHeader[name] !== value)) {
    throw new Error('the seal is bound elsewhere')
  }
  return new TextDecoder().decode(plaintext)
}
