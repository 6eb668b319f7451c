import { Address, type xdr } from '@stellar/stellar-sdk'
import { Refusal } from '#lib/refusal/refusal.ts'
import { sponsorRefused } from '#lib/refusal/sponsor-refusal.ts'
import { markedAsArchived } from '#lib/stellar/entries.ts'
import { baseAccount, decodeEnvelope, type SignedTransaction } from '#lib/stellar/node/envelope.ts'
import { type Call, type CallRules, checkArguments, isClientCall, readArguments } from './call-table.ts'
import { outerFee } from './fee-bump.ts'

/** The network's own limit on an envelope, in bytes. */
const ENVELOPE_LIMIT = 132_096

/**
 * Decodes the transaction that a client signed: base64 XDR of a v1 envelope. Needs neither database nor ledger.
 * @throws Refusal `signed-xdr-invalid`
 */
export function decodeInner(signedXDR: string, passphrase: string): SignedTransaction {
  if (signedXDR.length > Math.ceil(ENVELOPE_LIMIT / 3) * 4) throw malformed()
  try {
    const { form, ...inner } = decodeEnvelope(signedXDR, passphrase)
    if (form === 'v1') return inner
  } catch (cause) {
    throw malformed(cause)
  }
  throw malformed()
}

const malformed = (cause?: unknown) =>
  new Refusal('signed-xdr-invalid', 'malformed transaction XDR', cause === undefined ? {} : { cause })

/** The rules of the sponsor. Fees are stroops. */
export interface SponsorRules {
  /** the confidential token: its payments are recorded even if the sponsor does not pay for them now */
  token: string | undefined
  /** contracts that may be called, C-addresses */
  contracts: ReadonlySet<string>
  functions: ReadonlySet<string>
  /** the maximum of a declared resource fee, and of the built outer fee */
  maxFee: bigint
  /** every address that the service controls: none of them may pay, sign or be called */
  controlled: ReadonlySet<string>
  /** the calls that the request may make in place of a transfer */
  calls?: CallRules | undefined
}

/** False if the sponsor would pay for nothing. */
export const paysForAnything = ({ contracts }: Pick<SponsorRules, 'contracts'>): boolean => contracts.size > 0

/** The call in an inner transaction. */
export interface Intent extends Call {
  contract: string
  function: string
  /** the source of the transaction, whose sequence number it uses */
  account: string
  /** unix seconds; 0 where there is none */
  minTime: bigint
  maxTime: bigint
  sequenceNumber: bigint
  /** the inner fee in stroops, resource fee included */
  fee: bigint
  /** stroops, as declared */
  resourceFee: bigint
  resources: xdr.SorobanResources
  /** the keys, base64, of the entries that it restores */
  archived: readonly string[]
}

/** How long a signed transaction must still be valid (seconds): long enough to be sent, and no longer than signing needs. */
const MIN_VALIDITY = 10
const MAX_VALIDITY = 330

/** The network's minimum inclusion fee of one operation. */
const INCLUSION_FEE = 100n

/**
 * Reads the call in `inner`: exactly one call, by default one confidential transfer that the source pays. Pure: no signature, no
 * ledger, no clock. It uses only the rules that also hold for what the ledger has applied; the others may have changed since.
 * @throws SponsorRefusal if it is anything else
 */
export function readIntent(inner: SignedTransaction, rules: SponsorRules): Intent {
  const { tx } = inner.envelope
  const { minTime = 0n, maxTime = 0n } = readTimeBounds(tx.cond) ?? {}
  const { call } = readInvocation(tx, inner.source)
  const contract = Address.fromScAddress(call.contractAddress).toString()
  if (contract !== rules.token && !rules.contracts.has(contract)) throw sponsorRefused('contract')
  if (!isKnown(call.functionName.toString(), rules)) throw sponsorRefused('function')
  if (tx.ext.type !== 'sorobanData') throw sponsorRefused('no-resources')
  const { resourceFee, resources } = tx.ext.sorobanData
  return {
    contract,
    function: call.functionName.toString(),
    account: inner.source,
    ...readArguments(call, inner.source, rules.calls),
    minTime,
    maxTime,
    sequenceNumber: tx.seqNum,
    fee: BigInt(tx.fee),
    resourceFee,
    resources,
    archived: markedAsArchived(tx.ext.sorobanData),
  }
}

/** Refuses what the sponsor does not pay for. Pure. Not for what the ledger has applied: nothing is left to be paid. */
export function checkPolicy(inner: SignedTransaction, intent: Intent, rules: SponsorRules): void {
  const { tx } = inner.envelope
  if (tx.sourceAccount.type !== 'keyTypeEd25519') throw sponsorRefused('muxed-source')
  if (tx.memo.type !== 'memoNone') throw sponsorRefused('memo')
  if (hasPreconditions(tx.cond)) throw sponsorRefused('preconditions')
  const { call, auth } = readInvocation(tx, inner.source)
  const { contract, owner, function: name } = intent
  if (!rules.contracts.has(contract)) throw sponsorRefused('contract')
  if (!(rules.calls?.functions ?? rules.functions).has(name)) throw sponsorRefused('function')
  checkArguments(intent, rules.calls)
  checkAuthorization(auth, call)
  // An address that the service controls may be paid, and may become a spender. It may neither pay nor be called.
  const isControlled = [inner.source, contract, owner].some((address) => address && rules.controlled.has(address))
  if (isControlled) throw sponsorRefused('own-address')
  checkFees(intent, rules)
}

/** Refuses time bounds that aren't open `now` (unix seconds), or close late: the payer would no longer expect the payment. */
export function checkTimeBounds({ minTime, maxTime }: Pick<Intent, 'minTime' | 'maxTime'>, now: number): void {
  if (maxTime === 0n) throw sponsorRefused('no-expiry')
  if (minTime > BigInt(now)) throw sponsorRefused('not-yet-valid')
  if (maxTime < BigInt(now + MIN_VALIDITY)) throw sponsorRefused('expires-too-soon')
  if (maxTime > BigInt(now + MAX_VALIDITY)) throw sponsorRefused('expires-too-late')
}

function readTimeBounds(cond: xdr.Preconditions): xdr.TimeBounds | null {
  if (cond.type === 'precondNone') return null
  return cond.type === 'precondTime' ? cond.timeBounds : cond.v2.timeBounds
}

function hasPreconditions(cond: xdr.Preconditions): boolean {
  if (cond.type !== 'precondV2') return false
  const { ledgerBounds, minSeqNum, minSeqAge, minSeqLedgerGap, extraSigners } = cond.v2
  return Boolean(ledgerBounds || minSeqNum !== null || minSeqAge || minSeqLedgerGap || extraSigners.length > 0)
}

function readInvocation(tx: xdr.Transaction, source: string) {
  const [operation, ...others] = tx.operations
  if (!operation || others.length > 0) throw sponsorRefused('operation-count')
  const { sourceAccount, body } = operation
  if (sourceAccount && (sourceAccount.type !== 'keyTypeEd25519' || baseAccount(sourceAccount) !== source)) {
    throw sponsorRefused('operation-source')
  }
  if (body.type !== 'invokeHostFunction') throw sponsorRefused('operation-type')
  const { hostFunction, auth } = body.invokeHostFunctionOp
  if (hostFunction.type !== 'hostFunctionTypeInvokeContract') throw sponsorRefused('operation-type')
  return { call: hostFunction.invokeContract, auth }
}

/** The function of a token's own transfer, which is recorded even if the sponsor does not pay for it now. */
const TRANSFER = 'confidential_transfer'

const isKnown = (name: string, { functions, calls }: SponsorRules): boolean =>
  calls ? calls.functions.has(name) || isClientCall(name) : functions.has(name) || name === TRANSFER

/**
 * The sponsor pays for everything that the inner transaction authorizes, so it may authorize this one call only, in the
 * name of the source account: credentials of another type, such as later protocols add, could use another account's signature.
 */
function checkAuthorization(entries: readonly xdr.SorobanAuthorizationEntry[], call: xdr.InvokeContractArgs): void {
  const [entry, ...others] = entries
  if (others.length > 0) throw sponsorRefused('auth-count')
  if (!entry) return
  if (entry.credentials.type !== 'sorobanCredentialsSourceAccount') throw sponsorRefused('auth-credentials')
  const { function: authorized, subInvocations } = entry.rootInvocation
  const isCall = authorized.type === 'sorobanAuthorizedFunctionTypeContractFn' && authorized.contractFn.equals(call)
  if (!isCall || subInvocations.length > 0) throw sponsorRefused('auth-invocation')
}

/**
 * The inner fee alone sets no limit: since CAP-66 a fee-bumped inner transaction may declare a resource fee far above its
 * fee. So both are capped, and the inner fee must cover the resource fee and an inclusion fee.
 */
function checkFees({ fee, resourceFee }: Intent, { maxFee }: SponsorRules): void {
  if (resourceFee > maxFee) {
    throw sponsorRefused('resource-fee-cap', { details: { fee: String(resourceFee), cap: String(maxFee) } })
  }
  if (resourceFee < 0n || fee < resourceFee + INCLUSION_FEE) throw sponsorRefused('fee-below-resources')
  if (outerFee(fee) > maxFee) throw sponsorRefused('fee-cap')
}
