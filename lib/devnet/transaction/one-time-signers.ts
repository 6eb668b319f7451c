import type { xdr } from '@stellar/stellar-sdk'
import { readAccount, withSigners, writeAccount } from '../state/account.ts'
import type { State } from '../state/state.ts'
import type { Inner } from './envelope.ts'
import { sourceOf } from './validity.ts'

/**
 * A pre-authorized transaction hash can be used once: it is removed from every source account, even if the transaction
 * fails.
 */
export function removeOneTimeSigners(inner: Inner, state: State, sequence: number): void {
  const sources = new Set([inner.source, ...inner.tx.operations.map((operation) => sourceOf(operation, inner))])
  for (const source of sources) removeOneTimeSigner(source, inner.hash, state, sequence)
}

export function removeOneTimeSigner(account: string, hash: Uint8Array, state: State, sequence: number): void {
  const entry = readAccount(state, account)
  const remaining = entry?.signers.filter(({ key }) => !isHash(key, hash))
  if (entry && remaining && remaining.length < entry.signers.length)
    writeAccount(state, withSigners(entry, remaining), sequence)
}

function isHash(key: xdr.SignerKey, hash: Uint8Array): boolean {
  return key.type === 'signerKeyTypePreAuthTx' && Buffer.compare(key.preAuthTx.value, hash) === 0
}
