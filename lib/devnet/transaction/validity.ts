import { xdr } from '@stellar/stellar-sdk'
import { baseAccount } from '#lib/stellar/node/envelope.ts'
import { availableBalance, readAccount } from '../state/account.ts'
import { publicKey } from '../state/ledger-key.ts'
import type { State } from '../state/state.ts'
import { type Inner, isSorobanOperation } from './envelope.ts'
import { checkOperation, isSupported, resultsWith } from './operations/operation.ts'
import type { Moment } from './preconditions.ts'
import { isBadSequence, isTooEarly, isTooLate, isTooSoonForAccount, preconditionsOf } from './preconditions.ts'
import type { Failure } from './results.ts'
import { checkSignatures, masterSigner, type SignatureChecker, signersOf } from './signatures.ts'
import { checkSoroban, hasFeeShape } from './soroban-validity.ts'
import { LOW, levelOf, thresholdOf } from './thresholds.ts'

/** stroops per operation, in a ledger with room for every pending transaction */
export const BASE_FEE = 100n

/**
 * The context in which a transaction is checked: alone or inside a fee bump, before its ledger or while it is applied.
 */
interface Judgement {
  readonly state: State
  readonly moment: Moment
  readonly isInsideFeeBump: boolean
  readonly isApplying: boolean
}

/** A failure, and whether it consumes the sequence number. */
type CommonFailure = Failure & { readonly usesSequence: boolean }

/** Every check except the operations', in core's order (TransactionFrame::commonValid). */
export function checkCommon(inner: Inner, checker: SignatureChecker, judgement: Judgement): CommonFailure | undefined {
  const early = checkForm(inner, judgement)
  if (early) return { ...early, usesSequence: false }
  const account = readAccount(judgement.state, inner.source)
  if (!account) return { code: 'txNoAccount', usesSequence: false }
  if (isBadSequence(inner, account, judgement.moment)) return { code: 'txBadSeq', usesSequence: false }
  if (isTooSoonForAccount(inner, account, judgement.moment)) {
    return { code: 'txBadMinSeqAgeOrGap', usesSequence: true }
  }
  const signed = checker.carries(signersOf(account), thresholdOf(account, LOW)) && hasExtraSigners(inner, checker)
  if (!signed) return { code: 'txBadAuth', usesSequence: true }
  const pays = !judgement.isApplying && !judgement.isInsideFeeBump
  if (pays && availableBalance(account) < BigInt(inner.tx.fee))
    return { code: 'txInsufficientBalance', usesSequence: true }
  return undefined
}

/** The first error of a transaction before its ledger; undefined for a valid one. */
export function checkTransaction(inner: Inner, judgement: Judgement): Failure | undefined {
  const checker = checkSignatures(inner)
  const failure = checkCommon(inner, checker, judgement)
  if (failure) return failure
  for (const [index, operation] of inner.tx.operations.entries()) {
    const result =
      (isSupported(operation.body) ? undefined : xdr.OperationResult.opNotSupported()) ??
      signatureFault(operation, inner, checker, judgement.state) ??
      checkOperation(operation, sourceOf(operation, inner))
    if (result) {
      const faults = inner.tx.operations.map((_, position) => (position === index ? result : undefined))
      return { code: 'txFailed', operations: resultsWith(inner.tx.operations, faults) }
    }
  }
  return checker.allUsed() ? undefined : { code: 'txBadAuthExtra' }
}

/** opBAD_AUTH or opNO_ACCOUNT of one operation. A source that an earlier operation will create signs like a new account. */
export function signatureFault(
  operation: xdr.Operation,
  inner: Inner,
  checker: SignatureChecker,
  state: State,
): xdr.OperationResult | undefined {
  const source = sourceOf(operation, inner)
  const account = readAccount(state, source)
  if (account) {
    const signed = checker.carries(signersOf(account), thresholdOf(account, levelOf(operation.body)))
    return signed ? undefined : xdr.OperationResult.opBadAuth()
  }
  if (!operation.sourceAccount) return xdr.OperationResult.opNoAccount()
  return checker.carries([masterSigner(publicKey(source), 1)], 0) ? undefined : xdr.OperationResult.opBadAuth()
}

/** strkey of the operation's source: its own, or else the transaction's */
export function sourceOf(operation: xdr.Operation, inner: Inner): string {
  return operation.sourceAccount ? baseAccount(operation.sourceAccount) : inner.source
}

function checkForm(inner: Inner, { moment, isInsideFeeBump }: Judgement): Failure | undefined {
  const { tx } = inner
  if (!hasFeeShape(inner) || !hasSoundExtraSigners(inner)) return { code: 'txMalformed' }
  if (tx.operations.length === 0) return { code: 'txMissingOperation' }
  const isMixed = tx.operations.some((operation) => isSorobanOperation(operation) !== inner.isSoroban)
  if (isMixed || (inner.isSoroban ? tx.operations.length > 1 : inner.soroban)) return { code: 'txMalformed' }
  const soroban = inner.isSoroban ? checkSoroban(inner, isInsideFeeBump) : undefined
  if (soroban) return soroban
  if (isTooEarly(inner, moment)) return { code: 'txTooEarly' }
  if (isTooLate(inner, moment)) return { code: 'txTooLate' }
  if (isInsideFeeBump) return undefined
  const offered = BigInt(tx.fee) - (inner.soroban?.resourceFee ?? 0n)
  return offered < BASE_FEE * BigInt(tx.operations.length) ? { code: 'txInsufficientFee' } : undefined
}

/** CAP-21 and CAP-40: no duplicates, and no empty signed payload */
function hasSoundExtraSigners(inner: Inner): boolean {
  const signers = preconditionsOf(inner)?.extraSigners ?? []
  if (new Set(signers.map((key) => key.toXdr('base64'))).size < signers.length) return false
  return signers.every(
    (key) => key.type !== 'signerKeyTypeEd25519SignedPayload' || key.ed25519SignedPayload.payload.length > 0,
  )
}

function hasExtraSigners(inner: Inner, checker: SignatureChecker): boolean {
  const keys = preconditionsOf(inner)?.extraSigners ?? []
  if (keys.length === 0) return true
  return checker.carries(
    keys.map((key) => new xdr.Signer({ key, weight: 1 })),
    keys.length,
  )
}
