import { equalBytes } from '@noble/curves/utils.js'
import { hexToBytes } from '@noble/hashes/utils.js'
import { type DisclosureCircuit, findDisclosureCircuit } from '#lib/prover/disclosure-circuits.ts'
import { type KeySetName, keySetOf, parseKeySet } from '#lib/prover/key-set.ts'
import { ProverError } from '#lib/prover/prover-error.ts'
import { loadZeroKnowledgeVerifier, type VerifyZeroKnowledge } from '#lib/prover/verifier.ts'
import type { ConfidentialAccount } from '#lib/wallet/account.ts'
import { AMOUNT_LIMIT } from '#lib/wallet/commitment.ts'
import { encodePoint, H, multiply } from '#lib/wallet/grumpkin.ts'
import { TAG } from '#lib/wallet/poseidon.ts'
import { type Bundle, ZK_PROOF_BYTES } from './bundle.ts'
import { DisclosureError } from './disclosure-error.ts'
import type { DisclosureSource } from './ledger-source.ts'
import { accountOf, isToItself, isWithin, type Payment, payerOf, readPayment } from './payment.ts'
import { type DisclosureFiles, keyOf } from './prover.ts'
import { type DisclosureStatement, publicInputs } from './public-inputs.ts'
import type { ClosedLedger } from './report.ts'
import { circuitsFor, type DisclosureRequest, thresholdOf } from './request.ts'
import { type Addressee, type SealTag, unseal } from './sealing.ts'

/** The result of a verified disclosure. Amounts are base units. */
export interface Verified {
  /** The payment, the total or the balance; undefined where a threshold was proved. */
  value: bigint | undefined
  /** The values of the bundles, whose sum is `value`. */
  subtotals: bigint[]
  /** In the order of the bundle. */
  payments: Payment[]
  /** Of a balance: the RPC's latest ledger just before it was read. */
  asOf?: ClosedLedger | undefined
  /** True under the embedded ledger's reference string: anyone can make this proof. */
  forgeable: boolean
}

export interface VerifierContext {
  source: DisclosureSource
  files: DisclosureFiles
  /** by default that of the request's network */
  keySet?: KeySetName
  /** Loads the verifier for a reference string; by default a new one, which takes half a second. */
  load?(g2: Uint8Array): Promise<VerifyZeroKnowledge>
}

/** A disclosure as it reached the requester. */
interface Received {
  request: DisclosureRequest
  /** r_R */
  secret: bigint
  bundles: readonly Bundle[]
}

/**
 * Performs every step of the verification, in order. Everything except the proof and the sealed value comes from the
 * request and from the source.
 * @throws DisclosureError with the code of the step that fails; WalletError, LedgerError and ProverError if it cannot be performed
 */
export async function verifyDisclosure(context: VerifierContext, received: Received): Promise<Verified> {
  const { request, secret, bundles } = received
  const { source, files, load = loadZeroKnowledgeVerifier, keySet = keySetOf(request.network) } = context
  const answers = bundles.map((bundle) => ({ bundle, circuit: requireCircuit(request, bundle) }))
  const addressee = requireOwnKey(request, secret)
  checkShape(request, answers)
  if ((await source.readPassphrase()) !== request.network) {
    throw new DisclosureError('other-network', `the RPC does not belong to the network "${request.network}"`)
  }
  const asOf = request.statement === 'balance' ? await source.readLatestLedger() : undefined
  const payments = await findPayments(source, request, answers)
  const accounts = await readParties(source, request, payments.flat())
  const statements: DisclosureStatement[] = []
  for (const [index, { bundle, circuit }] of answers.entries()) {
    const answer = { bundle, circuit, payments: payments[index] ?? [], addressee }
    statements.push(await rebuildStatement({ source, request, accounts }, answer))
  }
  const keys = parseKeySet(keySet, await files.readKeySet(keySet))
  const verify = await load(keys.g2)
  for (const [index, statement] of statements.entries()) {
    const proof = bundles[index]?.proof ?? new Uint8Array()
    if (!holds(verify, publicInputs(statement), proof, keyOf(keys, statement.circuit))) {
      throw new DisclosureError('proof-invalid', 'the proof does not hold for this request and these payments')
    }
  }
  const values = answers.flatMap(({ bundle: { sealed }, circuit }) =>
    sealed ? [unseal(sealTagOf(circuit), sealed, secret, addressee.nonce)] : [],
  )
  return {
    value: values.length > 0 ? sumOf(values) : undefined,
    subtotals: values,
    payments: payments.flat(),
    asOf,
    forgeable: keySet === 'embedded',
  }
}

/** A total has a different tag, so that it cannot pass for a single payment. */
export const sealTagOf = ({ kind }: DisclosureCircuit): SealTag =>
  kind === 'total' ? TAG.disclosedTotal : TAG.disclosedValue

/** Step 0: only the circuits of the request are accepted. */
function requireCircuit(request: DisclosureRequest, { circuit: name }: Bundle): DisclosureCircuit {
  const circuit = findDisclosureCircuit(name)
  if (circuit && circuitsFor(request).includes(circuit)) return circuit
  throw new DisclosureError('unknown-circuit', `the request does not accept the circuit ${JSON.stringify(name)}`)
}

function requireOwnKey(request: DisclosureRequest, secret: bigint): Addressee {
  const key = hexToBytes(request.key)
  if (equalBytes(encodePoint(multiply(H, secret)), key)) {
    return { key, nonce: hexToBytes(request.nonce) }
  }
  throw new DisclosureError('key-mismatch', 'the secret key is not that of the request')
}

interface Answer {
  bundle: Bundle
  circuit: DisclosureCircuit
}

/** A file has one bundle, except for a total in several parts. */
function checkShape(request: DisclosureRequest, answers: readonly Answer[]): void {
  const isTotal = request.statement === 'total' && thresholdOf(request) === undefined
  if (answers.length === 0 || (answers.length > 1 && !isTotal)) throw misshapen('the number of bundles is wrong')
  for (const { bundle, circuit } of answers) {
    const count = bundle.events.length
    const fits = circuit.kind === 'total' ? count >= 1 && count <= circuit.slots : count === circuit.slots
    if (!fits) throw misshapen(`the circuit ${circuit.name} does not take ${count} payments`)
    if ((bundle.sealed !== undefined) !== (circuit.disclosed === 'value')) {
      throw misshapen(`the circuit ${circuit.name} ${bundle.sealed ? 'seals no value' : 'seals a value'}`)
    }
  }
}

const misshapen = (reason: string) => new DisclosureError('bundle-invalid', `the bundle is malformed: ${reason}`)

/** Step 1: each referenced event is found, once, and is a payment of the request's account in its period. */
async function findPayments(
  source: DisclosureSource,
  request: DisclosureRequest,
  answers: readonly Answer[],
): Promise<Payment[][]> {
  const seen = new Set<string>()
  const once = (place: string) => {
    if (seen.has(place)) throw new DisclosureError('event-repeated', `the file refers to the event ${place} twice`)
    seen.add(place)
  }
  for (const { transaction, eventIndex } of answers.flatMap(({ bundle }) => bundle.events)) {
    once(`${transaction} ${eventIndex}`)
  }
  const found: Payment[][] = []
  for (const { bundle, circuit } of answers) {
    const payments: Payment[] = []
    for (const reference of bundle.events) {
      const payment = readPayment(await source.findEvent(reference), request.token)
      once(payment.id)
      checkPayment(request, circuit, payment)
      payments.push(payment)
    }
    found.push(payments)
  }
  return found
}

function checkPayment(request: DisclosureRequest, circuit: DisclosureCircuit, payment: Payment): void {
  if (circuit.kind === 'balance') return
  if (accountOf(payment, circuit.role) !== request.account) {
    throw new DisclosureError(
      'other-account',
      `transaction ${payment.transaction} pays from ${payment.from} to ${payment.to}, not as requested for ${request.account}`,
    )
  }
  if (request.statement === 'total' && isToItself(payment)) {
    const reason = `in transaction ${payment.transaction} ${payment.from} pays itself, which no total may include`
    throw new DisclosureError('self-payment', reason)
  }
  if (request.statement === 'total' && !isWithin(request.period, payment)) {
    throw new DisclosureError(
      'outside-period',
      `transaction ${payment.transaction} is of ${payment.closedAt}, outside the requested period`,
    )
  }
}

/** Step 2: the current entries of every account whose key a statement needs. */
async function readParties(source: DisclosureSource, request: DisclosureRequest, payments: readonly Payment[]) {
  const isSender = request.statement !== 'balance' && request.role === 'sender'
  const names = isSender ? payments.flatMap((payment) => [payerOf(payment), payment.to]) : [request.account]
  const accounts = await source.readAccounts([...new Set(names)])
  const missing = names.find((name) => !accounts.has(name))
  if (missing === undefined) return accounts
  throw new DisclosureError('not-registered', `${missing} has no confidential account`)
}

interface Rebuilding {
  source: DisclosureSource
  request: DisclosureRequest
  accounts: ReadonlyMap<string, ConfidentialAccount>
}

/** Steps 3 and 4: the statement that this proof must prove. */
async function rebuildStatement(
  { source, request, accounts }: Rebuilding,
  { bundle, circuit, payments, addressee }: Answer & { payments: Payment[]; addressee: Addressee },
): Promise<DisclosureStatement> {
  const account = accounts.get(request.account)
  const threshold = thresholdOf(request)
  if (!bundle.sealed && (threshold === undefined || threshold >= AMOUNT_LIMIT)) throw misshapen('no value')
  const shared = {
    circuit,
    token: request.token,
    payments,
    viewingKeys: new Map([...accounts].map(([name, { viewingKey }]) => [name, viewingKey])),
    addressee,
    disclosed: bundle.sealed ? { sealed: bundle.sealed } : { threshold: threshold ?? 0n },
  }
  if (circuit.kind === 'balance') return { ...shared, key: account?.viewingKey, spendable: account?.spendable }
  if (circuit.role === 'recipient') return { ...shared, key: account?.viewingKey }
  if (circuit.role === 'sender') return shared
  return { ...shared, key: await findSharedAuditorKey(source, account, payments) }
}

/** The key that the account's auditor had for each of these payments. A proof covers a single key. */
async function findSharedAuditorKey(
  source: DisclosureSource,
  account: ConfidentialAccount | undefined,
  payments: readonly Payment[],
): Promise<Uint8Array> {
  const [shared, ...others] = await source.findAuditorKeys(account?.auditorId ?? 0, payments)
  if (!shared) throw misshapen('no payment')
  if (others.some((key) => !equalBytes(key, shared))) {
    throw misshapen('its payments were encrypted to two keys of the auditor')
  }
  return shared
}

/** Step 5. A proof that makes the backend fail counts as invalid. */
function holds(verify: VerifyZeroKnowledge, inputs: Uint8Array, proof: Uint8Array, key: Uint8Array): boolean {
  if (proof.length !== ZK_PROOF_BYTES) return false
  try {
    return verify(inputs, proof, key)
  } catch (error) {
    if (error instanceof ProverError) return false
    throw error
  }
}

function sumOf(values: readonly bigint[]): bigint {
  const total = values.reduce((sum, value) => sum + value, 0n)
  if (total < AMOUNT_LIMIT) return total
  throw new DisclosureError('cannot-decrypt', 'the total of the bundles is out of range')
}
