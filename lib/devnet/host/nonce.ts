import type { LedgerContext } from '../state/ledger-context.ts'
import { NETWORK_LIMITS } from '../transaction/fees.ts'
import { contractData, nonceKey } from './entry-key.ts'
import { hostError } from './host-error.ts'
import { VOID } from './scval.ts'
import type { Storage } from './storage.ts'

/**
 * Uses a nonce of `address`. It is stored until the signature expires; `expiration` is the last ledger
 * in which the signature is valid. @throws Error(Auth, InvalidInput) if that has passed or exceeds the longest
 * lifetime; Error(Auth, ExistingValue) for a used nonce.
 */
export function consumeNonce(use: {
  readonly address: string
  readonly nonce: bigint
  readonly expiration: number
  readonly storage: Storage
  readonly ledger: LedgerContext
}): void {
  const { address, nonce, expiration, storage, ledger } = use
  if (ledger.sequence > expiration) {
    throw hostError(
      'Auth',
      'InvalidInput',
      `signature has expired: ledger ${ledger.sequence}, last valid ${expiration}`,
    )
  }
  if (expiration > ledger.sequence + NETWORK_LIMITS.maximumTtl - 1) {
    throw hostError('Auth', 'InvalidInput', `signature expiration is too late: ${expiration}`)
  }
  const key = nonceKey(address, nonce)
  if (storage.get(key)) throw hostError('Auth', 'ExistingValue', `nonce already exists for address ${address}`)
  storage.put(key, contractData(key, VOID), expiration)
}
