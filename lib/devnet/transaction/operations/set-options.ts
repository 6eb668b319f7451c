import { xdr } from '@stellar/stellar-sdk'
import {
  AUTH_CLAWBACK,
  AUTH_IMMUTABLE,
  AUTH_REVOCABLE,
  availableBalance,
  MAX_SUBENTRIES,
  readAccount,
  withSigners,
  writeAccount,
} from '../../state/account.ts'
import { accountId, isSoundString } from '../../state/ledger-key.ts'
import type { Applied, OperationContext } from './context.ts'

const Result = xdr.SetOptionsResult
type Outcome = Applied<xdr.SetOptionsResult | 'too-many-subentries'>

const ALL_FLAGS = 15
const MAX_SIGNERS = 20

export function checkSetOptions(op: xdr.SetOptionsOp, source: string): xdr.SetOptionsResult | undefined {
  const set = op.setFlags ?? 0
  const clear = op.clearFlags ?? 0
  if ((set | clear) & ~ALL_FLAGS) return Result.setOptionsUnknownFlag()
  if (set & clear) return Result.setOptionsBadFlags()
  const weights = [op.masterWeight, op.lowThreshold, op.medThreshold, op.highThreshold]
  if (weights.some((weight) => (weight ?? 0) > 255)) return Result.setOptionsThresholdOutOfRange()
  if (op.signer && !isSoundSigner(op.signer, source)) return Result.setOptionsBadSigner()
  if (op.homeDomain && !isSoundString(op.homeDomain)) return Result.setOptionsInvalidHomeDomain()
  return undefined
}

export function applySetOptions(op: xdr.SetOptionsOp, context: OperationContext): Outcome {
  const { state, ledger, account } = context
  if (op.inflationDest && !readAccount(state, accountId(op.inflationDest))) {
    return { result: Result.setOptionsInvalidInflation() }
  }
  const changesFlags = (op.setFlags ?? 0) !== 0 || (op.clearFlags ?? 0) !== 0
  if (changesFlags && account.flags & AUTH_IMMUTABLE) return { result: Result.setOptionsCantChange() }
  const flags = (account.flags & ~(op.clearFlags ?? 0)) | (op.setFlags ?? 0)
  if (flags & AUTH_CLAWBACK && !(flags & AUTH_REVOCABLE)) return { result: Result.setOptionsAuthRevocableRequired() }
  const changed = new xdr.AccountEntry({
    ...account,
    flags,
    inflationDest: op.inflationDest ?? account.inflationDest,
    homeDomain: op.homeDomain ?? account.homeDomain,
    thresholds: thresholdsOf(op, account),
  })
  const signed = op.signer ? setSigner(changed, op.signer) : { account: changed }
  if ('result' in signed) return signed
  writeAccount(state, signed.account, ledger.sequence)
  return { result: Result.setOptionsSuccess() }
}

function isSoundSigner(signer: xdr.Signer, source: string): boolean {
  if (signer.weight > 255) return false
  const { key } = signer
  if (key.type === 'signerKeyTypeEd25519SignedPayload') return key.ed25519SignedPayload.payload.length > 0
  if (key.type !== 'signerKeyTypeEd25519') return true
  return accountId(xdr.PublicKey.publicKeyTypeEd25519(key.ed25519)) !== source
}

function thresholdsOf(op: xdr.SetOptionsOp, account: xdr.AccountEntry): Uint8Array {
  const [master = 0, low = 0, medium = 0, high = 0] = account.thresholds.value
  return new Uint8Array([
    op.masterWeight ?? master,
    op.lowThreshold ?? low,
    op.medThreshold ?? medium,
    op.highThreshold ?? high,
  ])
}

/** Weight 0 removes a signer, and succeeds without one. Signers are sorted by their XDR. */
function setSigner(account: xdr.AccountEntry, signer: xdr.Signer): { account: xdr.AccountEntry } | Outcome {
  const others = account.signers.filter((present) => !present.key.equals(signer.key))
  if (signer.weight === 0) return { account: withSigners(account, others) }
  const grown = withSigners(account, [...others, signer].sort(byKey))
  if (others.length < account.signers.length) return { account: grown }
  if (others.length >= MAX_SIGNERS) return { result: Result.setOptionsTooManySigners() }
  if (grown.numSubEntries > MAX_SUBENTRIES) return { result: 'too-many-subentries' }
  if (availableBalance(grown) < 0n) return { result: Result.setOptionsLowReserve() }
  return { account: grown }
}

function byKey(left: xdr.Signer, right: xdr.Signer): number {
  return Buffer.compare(left.key.toXdr(), right.key.toXdr())
}
