import { xdr } from '@stellar/stellar-sdk'
import { describeFailure, log } from '#lib/observability/log.ts'
import { ProofUnchecked } from '../host/proofs.ts'
import { readAccount, withSequence, withSigners, writeAccount } from '../state/account.ts'
import { metaChanges } from '../state/entry.ts'
import type { LedgerContext } from '../state/ledger-context.ts'
import { accountKey } from '../state/ledger-key.ts'
import type { State } from '../state/state.ts'
import type { Envelope, Inner } from '../transaction/envelope.ts'
import { applyOperation, type OperationOutcome, refused, resultsWith } from '../transaction/operations/operation.ts'
import type { Failure, InnerOutcome } from '../transaction/results.ts'
import { checkSignatures, type SignatureChecker } from '../transaction/signatures.ts'
import { checkCommon, signatureFault, sourceOf } from '../transaction/validity.ts'
import { applySoroban, type SorobanCharge, unusedCharge } from './soroban-application.ts'

/** The effects of a transaction in its ledger, before refunds. */
export interface Application {
  readonly outcome: InnerOutcome
  /** sequence number and one-time signers: kept even if the operations fail */
  readonly changesBefore: xdr.LedgerEntryChange[]
  /** one per operation; none if it failed */
  readonly operations: xdr.OperationMetaV2[]
  readonly soroban: { readonly charge: SorobanCharge; readonly returnValue: xdr.ScVal | null } | undefined
  readonly diagnostics: xdr.DiagnosticEvent[]
}

/**
 * Applies an envelope whose fee is already charged. Its validity is checked again with this ledger's number and
 * time; a correct sequence number is consumed even if the transaction fails.
 * @throws ProofUnchecked
 */
export function applyEnvelope(envelope: Envelope, state: State, ledger: LedgerContext): Application {
  const { inner, bump } = envelope
  const before = state.fork()
  if (bump) removeOneTimeSigner(envelope.feeSource, bump.hash, before, ledger.sequence)
  const failure = prepare(inner, bump !== undefined, before, ledger)
  const changesBefore = [...(bump ? touched(envelope.feeSource, before) : []), ...metaChanges(before.changes())]
  before.commit()
  if (failure) return rejected(inner, failure, changesBefore)
  try {
    return inner.isSoroban
      ? applyContractCall(inner, state, ledger, changesBefore)
      : applyOperations(inner, state, ledger, changesBefore)
  } catch (cause) {
    // The verifier is unavailable. The call must wait, because a failure would cost the sender the fee.
    if (cause instanceof ProofUnchecked) throw cause
    // A bug here must not prevent every later ledger from closing. Core's result for a bug is txINTERNAL_ERROR.
    log('error', 'transaction hit a bug', { hash: envelope.hash, failure: describeFailure(cause) })
    return rejected(inner, { code: 'txInternalError' }, changesBefore)
  }
}

/** Core loads the fee source of a fee bump first, so its meta contains an update without a change. */
function touched(account: string, state: State): xdr.LedgerEntryChange[] {
  const entry = state.get(accountKey(account))
  if (!entry) return []
  const { data, lastModified } = entry
  const loaded = new xdr.LedgerEntry({ lastModifiedLedgerSeq: lastModified, data, ext: xdr.LedgerEntryExt.v0() })
  return [xdr.LedgerEntryChange.ledgerEntryState(loaded), xdr.LedgerEntryChange.ledgerEntryUpdated(loaded)]
}

function prepare(inner: Inner, isInsideFeeBump: boolean, state: State, ledger: LedgerContext): Failure | undefined {
  const moment = { sequence: ledger.sequence, closeTime: ledger.closeTime, latest: 0 }
  const checker = checkSignatures(inner)
  const failure = checkCommon(inner, checker, { state, moment, isInsideFeeBump, isApplying: true })
  const account = readAccount(state, inner.source)
  if (account && (!failure || failure.usesSequence)) {
    writeAccount(state, withSequence(account, inner.tx.seqNum, ledger), ledger.sequence)
  }
  const unsigned = failure ?? checkOperationSignatures(inner, checker, state)
  removeOneTimeSigners(inner, state, ledger.sequence)
  return unsigned ?? (checker.allUsed() ? undefined : { code: 'txBadAuthExtra' })
}

function checkOperationSignatures(inner: Inner, checker: SignatureChecker, state: State): Failure | undefined {
  const { operations } = inner.tx
  const faults = operations.map((operation) => signatureFault(operation, inner, checker, state))
  if (faults.every((fault) => fault === undefined)) return undefined
  return { code: 'txFailed', operations: resultsWith(operations, faults) }
}

/** Runs every operation, so that each has its own result. Their changes are kept only if all of them succeed. */
function applyOperations(
  inner: Inner,
  state: State,
  ledger: LedgerContext,
  changesBefore: xdr.LedgerEntryChange[],
): Application {
  const whole = state.fork()
  const results: xdr.OperationResult[] = []
  const metas: xdr.OperationMetaV2[] = []
  let succeeded = true
  for (const operation of inner.tx.operations) {
    const layer = whole.fork()
    const { ok, result, events } = applyOne(operation, inner, layer, ledger)
    results.push(result)
    const meta = operationMeta(layer, events)
    // Core loads the account even if there is nothing to bump.
    const isIdle = operation.body.type === 'bumpSequence' && meta.changes.length === 0
    metas.push(
      isIdle ? new xdr.OperationMetaV2({ ...meta, changes: touched(sourceOf(operation, inner), layer) }) : meta,
    )
    if (ok) layer.commit()
    succeeded &&= ok
  }
  if (succeeded) whole.commit()
  return {
    outcome: { code: outcomeCode(succeeded), operations: results },
    changesBefore,
    operations: succeeded ? metas : [],
    soroban: undefined,
    diagnostics: [],
  }
}

function applyOne(operation: xdr.Operation, inner: Inner, state: State, ledger: LedgerContext): OperationOutcome {
  const source = sourceOf(operation, inner)
  const account = readAccount(state, source)
  if (!account) return refused(xdr.OperationResult.opNoAccount())
  return applyOperation(operation, { state, ledger, source, account, memo: inner.tx.memo })
}

function applyContractCall(
  inner: Inner,
  state: State,
  ledger: LedgerContext,
  changesBefore: xdr.LedgerEntryChange[],
): Application {
  const [operation] = inner.tx.operations
  const source = operation ? sourceOf(operation, inner) : inner.source
  if (!readAccount(state, source)) {
    const results = [xdr.OperationResult.opNoAccount()]
    return rejected(inner, { code: 'txFailed', operations: results }, changesBefore)
  }
  const layer = state.fork()
  const { ok, result, events, charge, returnValue, diagnostics } = applySoroban(inner, source, layer, ledger)
  const operations = ok ? [operationMeta(layer, events)] : []
  if (ok) layer.commit()
  return {
    outcome: { code: outcomeCode(ok), operations: [result] },
    changesBefore,
    operations,
    soroban: { charge, returnValue },
    diagnostics,
  }
}

const outcomeCode = (ok: boolean) => (ok ? 'txSuccess' : 'txFailed')

function rejected(inner: Inner, outcome: Failure, changesBefore: xdr.LedgerEntryChange[]): Application {
  const soroban = inner.isSoroban ? { charge: unusedCharge(inner), returnValue: null } : undefined
  return { outcome, changesBefore, operations: [], soroban, diagnostics: [] }
}

function operationMeta(layer: State, events: xdr.ContractEvent[]): xdr.OperationMetaV2 {
  return new xdr.OperationMetaV2({ ext: xdr.ExtensionPoint.v0(), changes: metaChanges(layer.changes()), events })
}

/**
 * A pre-authorized transaction hash can be used once: it is removed from every source account, even if the transaction
 * fails.
 */
function removeOneTimeSigners(inner: Inner, state: State, sequence: number): void {
  const sources = new Set([inner.source, ...inner.tx.operations.map((operation) => sourceOf(operation, inner))])
  for (const source of sources) removeOneTimeSigner(source, inner.hash, state, sequence)
}

function removeOneTimeSigner(account: string, hash: Uint8Array, state: State, sequence: number): void {
  const entry = readAccount(state, account)
  const remaining = entry?.signers.filter(({ key }) => !isHash(key, hash))
  if (entry && remaining && remaining.length < entry.signers.length)
    writeAccount(state, withSigners(entry, remaining), sequence)
}

function isHash(key: xdr.SignerKey, hash: Uint8Array): boolean {
  return key.type === 'signerKeyTypePreAuthTx' && Buffer.compare(key.preAuthTx.value, hash) === 0
}
