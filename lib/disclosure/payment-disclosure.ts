import { equalBytes } from '@noble/curves/utils.js'
import { AMOUNT_LIMIT } from '#lib/wallet/commitment.ts'
import { encodePoint, H, multiply } from '#lib/wallet/grumpkin.ts'
import type { ConfidentialKeys } from '#lib/wallet/keys.ts'
import { type DiscloserContext, notRegistered, otherKeys, proveAnswer } from './answer.ts'
import type { Bundle } from './bundle.ts'
import { DisclosureError } from './disclosure-error.ts'
import type { DisclosureSource } from './ledger-source.ts'
import { type OpenedPayment, openAsAuditor, openAsRecipient, openAsSender } from './opening.ts'
import { accountOf, isToItself, isWithin, type Payment, payerOf } from './payment.ts'
import type { Secrets } from './prover.ts'
import { circuitsFor, type DisclosureRequest, thresholdOf } from './request.ts'
import { choosePayments, type Part, splitTotal } from './selection.ts'

type PaymentRequest = Exclude<DisclosureRequest, { statement: 'balance' }>

/** Who can read a payment: its recipient or payer, or an auditor with every key it has had. */
export type Discloser =
  | { keys: Pick<ConfidentialKeys, 'sk' | 'vk' | 'viewingKey'> }
  | { auditorSecrets: readonly bigint[] }

/**
 * Answers a request about payments. Leaves out payments of other accounts; for a sender, payments that a channel made
 * from a delegation; and for a total, payments outside its period and those of the account to itself. A threshold also leaves out payments that cannot be
 * disclosed.
 * @returns the proofs, their payments, and how many were left out: those of channels, and those of the account to itself
 * @throws DisclosureError `not-true` if nothing is left, `not-disclosable`, `not-registered`, `too-many-payments`,
 *   `other-keys`
 */
export async function disclosePayments(
  context: DiscloserContext,
  request: PaymentRequest,
  discloser: Discloser,
  payments: readonly Payment[],
): Promise<{ bundles: Bundle[]; payments: OpenedPayment[]; byChannels: number; toItself: number }> {
  const requested = payments
    .filter((payment) => accountOf(payment, request.role) === request.account)
    .filter((payment) => request.statement === 'payment' || isWithin(request.period, payment))
  const concerned = request.statement === 'payment' ? requested : requested.filter((payment) => !isToItself(payment))
  const [first] = concerned
  if (!first) throw new DisclosureError('not-true', `there is no such payment of ${request.account}`)
  const threshold = thresholdOf(request)
  const leftOut: DisclosureError[] = []
  const openOne: OpenOne = (open) => {
    try {
      return [open()]
    } catch (error) {
      if (threshold === undefined || !(error instanceof DisclosureError)) throw error
      leftOut.push(error)
      return []
    }
  }
  const viewingKeys = await readViewingKeys(context.source, request, concerned)
  const groups = await openPayments(context, request, discloser, { payments: concerned, viewingKeys, openOne })
  const bundles: Bundle[] = []
  const chosen =
    threshold === undefined
      ? groups.flatMap((group) => partsOf(request, group).map((part) => ({ part, group })))
      : [chooseForThreshold(request, groups, threshold, leftOut)]
  for (const { part, group } of chosen) {
    bundles.push(await proveParts(context, request, { part, group, viewingKeys }))
  }
  const byChannels = concerned.length - leftOut.length - groups.flatMap((group) => group.payments).length
  const toItself = requested.length - concerned.length
  return { bundles, payments: chosen.flatMap(({ part }) => part.payments), byChannels, toItself }
}

/** Opens a payment; an empty list if it cannot be disclosed and may be left out. */
type OpenOne = (open: () => OpenedPayment) => OpenedPayment[]

/** Payments that one proof can cover: those of a sender, of a recipient, or under one key of an auditor. */
interface Group {
  payments: OpenedPayment[]
  key?: Uint8Array | undefined
  secrets: Secrets
}

/** A threshold is one proof, and a proof has one key of an auditor: the first under which the payments reach it. */
function chooseForThreshold(
  request: PaymentRequest,
  groups: readonly Group[],
  threshold: bigint,
  leftOut: readonly DisclosureError[],
): { part: Part; group: Group } {
  const failures: unknown[] = []
  for (const group of groups) {
    try {
      return { part: choosePayments(circuitsFor(request), group.payments, threshold), group }
    } catch (error) {
      failures.push(error)
    }
  }
  const sum = groups.flatMap(({ payments }) => payments).reduce((total, { value }) => total + value, 0n)
  if (groups.length > 1 && sum >= threshold) {
    throw new DisclosureError(
      'too-many-payments',
      'the payments under one key of the auditor do not reach the threshold, and a proof takes one key',
    )
  }
  // Whether the total reaches the threshold depends on the payments that are left out.
  const [reason] = sum < threshold ? [...leftOut, ...failures] : [...failures, ...leftOut]
  throw reason
}

function partsOf(request: PaymentRequest, { payments }: Group): Part[] {
  const circuits = circuitsFor(request)
  if (request.statement === 'total') return splitTotal(circuits, payments)
  const [circuit] = circuits
  if (!circuit || payments.length !== 1) throw new DisclosureError('not-true', 'the request asks for one payment')
  return [{ circuit, payments }]
}

interface Opening {
  payments: readonly Payment[]
  viewingKeys: ReadonlyMap<string, Uint8Array>
  openOne: OpenOne
}

async function openPayments(
  { source }: DiscloserContext,
  request: PaymentRequest,
  discloser: Discloser,
  opening: Opening,
): Promise<Group[]> {
  const { payments, viewingKeys, openOne } = opening
  if (request.role === 'recipient') {
    const { keys } = requireKeys(discloser)
    if (!isSame(viewingKeys.get(request.account), keys.viewingKey)) throw otherKeys(request.account)
    const opened = payments.flatMap((payment) =>
      openOne(() => openAsRecipient(keys.vk, payment) ?? unreadable(payment)),
    )
    return [{ payments: opened, key: keys.viewingKey, secrets: { sk: keys.sk } }]
  }
  if (request.role === 'sender') {
    const { keys } = requireKeys(discloser)
    const own = payments.filter((payment) => isSame(viewingKeys.get(payerOf(payment)), keys.viewingKey))
    const [first] = payments
    if (first && own.length === 0) throw otherPayer(first)
    const opened = own.flatMap((payment) =>
      openOne(() => {
        const viewingKey = viewingKeys.get(payment.to)
        if (!viewingKey) throw notRegistered(payment.to)
        return openAsSender(keys, payment, viewingKey)
      }),
    )
    return [{ payments: opened, secrets: {} }]
  }
  if (!('auditorSecrets' in discloser)) throw otherKeys('the auditor')
  return await openAudited(source, request, discloser.auditorSecrets, opening)
}

/** A group for each key of the auditor. */
async function openAudited(
  source: DisclosureSource,
  request: PaymentRequest,
  secrets: readonly bigint[],
  { payments, openOne }: Opening,
): Promise<Group[]> {
  const { role, account } = request
  if (role !== 'auditor-recipient' && role !== 'auditor-sender') throw new Error('no auditor discloses this')
  const auditorId = (await source.readAccounts([account])).get(account)?.auditorId
  if (auditorId === undefined) throw notRegistered(account)
  const groups = secrets.map((k) => ({
    key: encodePoint(multiply(H, k)),
    secrets: { k },
    payments: [] as OpenedPayment[],
  }))
  const keys = await source.findAuditorKeys(auditorId, payments)
  for (const [index, payment] of payments.entries()) {
    const group = groups.find((each) => isSame(keys[index], each.key))
    const opened = openOne(() => {
      if (!group) throw otherKeys(`the auditor of ${account} at the time of transaction ${payment.transaction}`)
      return openAsAuditor(group.secrets.k, payment, role) ?? unreadable(payment)
    })
    group?.payments.push(...opened)
  }
  return groups.filter((group) => group.payments.length > 0)
}

async function proveParts(
  context: DiscloserContext,
  request: DisclosureRequest,
  { part, group, viewingKeys }: { part: Part; group: Group; viewingKeys: ReadonlyMap<string, Uint8Array> },
): Promise<Bundle> {
  const { circuit, payments } = part
  const total = payments.reduce((sum, { value }) => sum + value, 0n)
  if (total >= AMOUNT_LIMIT) throw new DisclosureError('not-true', 'the total is out of range')
  // Slots without a payment accept any secret.
  const fill = (values: readonly (bigint | undefined)[], rest: bigint) =>
    Array.from({ length: circuit.slots }, (_, index) => values[index] ?? rest)
  const isSender = request.statement !== 'balance' && request.role === 'sender'
  const secrets: Secrets = {
    ...group.secrets,
    v: fill(
      payments.map(({ value }) => value),
      0n,
    ),
    ...(isSender && {
      sk: fill(
        payments.map(({ sk }) => sk),
        1n,
      ),
      r_e: fill(
        payments.map(({ rE }) => rE),
        1n,
      ),
    }),
  }
  const statement = { circuit, token: request.token, key: group.key, payments: payments.map(({ payment }) => payment) }
  const { proof, sealed } = await proveAnswer(
    context,
    request,
    { ...statement, viewingKeys },
    { secrets, value: total },
  )
  const events = payments.map(({ payment: { transaction, eventIndex } }) => ({ transaction, eventIndex }))
  return { circuit: circuit.name, events, proof, sealed }
}

/** The keys of the registered accounts: a sender's statement needs those of both parties. */
async function readViewingKeys(source: DisclosureSource, request: PaymentRequest, payments: readonly Payment[]) {
  const isSender = request.role === 'sender'
  const names = isSender ? payments.flatMap((payment) => [payerOf(payment), payment.to]) : []
  const accounts = await source.readAccounts([...new Set([request.account, ...names])])
  if (!accounts.has(request.account)) throw notRegistered(request.account)
  return new Map([...accounts].map(([name, { viewingKey }]) => [name, viewingKey]))
}

function requireKeys(discloser: Discloser): Extract<Discloser, { keys: unknown }> {
  if ('keys' in discloser) return discloser
  throw otherKeys('the account')
}

const isSame = (one: Uint8Array | undefined, other: Uint8Array): boolean => one !== undefined && equalBytes(one, other)

const otherPayer = (payment: Payment) =>
  new DisclosureError(
    'other-keys',
    payment.spender === undefined
      ? `the keys are not those of ${payment.from}`
      : `transaction ${payment.transaction} was paid by the channel ${payment.spender}: the channel discloses it`,
  )

function unreadable({ transaction }: Payment): never {
  throw new DisclosureError('other-keys', `the keys cannot read transaction ${transaction}`)
}
