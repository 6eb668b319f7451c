import { add, decodePoint, FIELD, G, H, multiply, ORDER, type Point } from './grumpkin.ts'
import { WalletError } from './wallet-error.ts'

/** Amounts and balances are base units, 0 ≤ v < 2^127 (range constraints of every circuit). */
export const AMOUNT_LIMIT = 1n << 127n

/** The opening of a commitment. Without it the balance cannot be spent. */
export interface Opening {
  /** Base units. */
  value: bigint
  /** Modulo the group order. */
  blinding: bigint
}

/** The opening of a new account's two commitments, which are the identity. */
export const NOTHING: Opening = { value: 0n, blinding: 0n }

/** v·G + r·H. Commitments add up like their openings. */
export function commit(opening: Opening): Point {
  return add(multiply(G, opening.value), multiply(H, opening.blinding))
}

export function addOpenings(left: Opening, right: Opening): Opening {
  return { value: left.value + right.value, blinding: (left.blinding + right.blinding) % ORDER }
}

/** Whether the opening opens the 64-byte commitment. */
export function opens(opening: Opening, commitment: Uint8Array): boolean {
  return commit(opening).equals(decodePoint(commitment))
}

/** @throws WalletError `malformed` for an amount out of range */
export function checkAmount(amount: bigint): bigint {
  if (amount < 0n || amount >= AMOUNT_LIMIT) throw new WalletError('malformed', 'the amount is out of range')
  return amount
}

/**
 * Blindings add up modulo the group order, which is larger than the field of the circuits, so no circuit accepts a blinding
 * in [FIELD, ORDER). A sum of blindings lies there once in 2^127 times; adding any other blinding moves it out.
 * @throws WalletError `unspendable`
 */
export function checkBlinding({ blinding }: Opening): void {
  if (blinding < FIELD) return
  throw new WalletError(
    'unspendable',
    'no proof can be made for the blinding of the spendable balance: receive a confidential transfer, merge it, and try again',
  )
}

/** The balance less the amount. @throws WalletError `balance-too-low`, `malformed` */
export function subtractAmount(balance: bigint, amount: bigint): bigint {
  if (checkAmount(amount) > balance)
    throw new WalletError('balance-too-low', 'the confidential balance does not cover the amount', {
      needed: amount,
      available: balance,
    })
  return balance - amount
}

/** A public key as a point. @throws WalletError `malformed` for an invalid point or the identity, which has no secret */
export function decodeKey(bytes: Uint8Array): Point {
  const point = decodePoint(bytes)
  if (point.is0()) throw new WalletError('malformed', 'the identity is not a public key')
  return point
}

/** Whether these are the bytes of a public key: a point of the curve other than the identity. */
export function isKey(bytes: Uint8Array): boolean {
  try {
    decodeKey(bytes)
    return true
  } catch {
    return false
  }
}
