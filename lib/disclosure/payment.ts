import { Address, scValToNative, xdr } from '@stellar/stellar-sdk'
import type { DisclosureRole } from '#lib/prover/disclosure-circuits.ts'
import { AMOUNT_LIMIT, isKey } from '#lib/wallet/commitment.ts'
import { isCanonical } from '#lib/wallet/grumpkin.ts'
import { DisclosureError } from './disclosure-error.ts'

/** An event as a source returns it. XDR is base64. */
export interface LedgerEvent {
  /** the RPC's id: ids sort in the order of the ledger */
  id: string
  /** the contract that emitted it, C… */
  contract: string
  ledger: number
  /** when the ledger closed, ISO 8601 */
  closedAt: string
  /** hex hash of the transaction, the outer one under a fee bump */
  transaction: string
  eventIndex: number
  topics: readonly string[]
  data: string
  /** where it was read */
  source: string
}

/** A confidential payment, as its event records it. Points are 64 bytes, fields 32. */
export interface Payment extends Omit<LedgerEvent, 'topics' | 'data' | 'contract'> {
  from: string
  to: string
  /** who paid from the delegation of `from` */
  spender?: string | undefined
  ephemeralKey: Uint8Array
  /** sigma, or sigma_a_new of a delegated payment */
  salt: Uint8Array
  /** the amount as its recipient decrypts it, and as the two auditors do */
  ciphertexts: Record<'recipient' | 'auditor-recipient' | 'auditor-sender', Uint8Array>
}

/** Topics after the name, and the field with the salt. */
const PAYMENTS: Readonly<Record<string, { topics: number; salt: string }>> = {
  transfer: { topics: 2, salt: 'sigma' },
  spender_transfer: { topics: 3, salt: 'sigma_a_new' },
}

/**
 * The payment in an event of `token`.
 * @throws DisclosureError `other-contract`, `wrong-event`
 */
export function readPayment({ topics, data, contract, ...event }: LedgerEvent, token: string): Payment {
  if (contract !== token) {
    throw new DisclosureError('other-contract', `${placeOf(event)} belongs to the contract ${contract}`)
  }
  const payment = decodePayment(topics, data)
  if (!payment) throw new DisclosureError('wrong-event', `${placeOf(event)} is not a confidential payment`)
  return { ...event, ...payment }
}

/** The payments among the events of a transaction, which may also emit other events. @throws as `readPayment` */
export function paymentsIn(events: readonly LedgerEvent[], token: string): Payment[] {
  return events
    .filter(({ topics, data }) => decodePayment(topics, data) !== undefined)
    .map((event) => readPayment(event, token))
}

/** A payment from an event's XDR; undefined for any other event of the token. */
export function decodePayment(topics: readonly string[], data: string): Omit<Payment, keyof LedgerEvent> | undefined {
  const decoded = decodeEvent(topics, data)
  const kind = decoded && Object.hasOwn(PAYMENTS, decoded.name) ? PAYMENTS[decoded.name] : undefined
  if (!decoded || !kind || decoded.addresses.length !== kind.topics) return undefined
  const { addresses, fields } = decoded
  const [from, to] = addresses.slice(-2)
  const spender = addresses.length === 3 ? addresses[0] : undefined
  const ephemeralKey = pointIn(fields, 'r_e_point')
  const salt = fieldIn(fields, kind.salt)
  const [recipient, auditorRecipient, auditorSender] = ['v_tilde', 'v_tilde_aud_r', 'v_tilde_aud_s'].map((name) =>
    fieldIn(fields, name),
  )
  if (!from || !to || !ephemeralKey || !salt || !recipient || !auditorRecipient || !auditorSender) return undefined
  const ciphertexts = { recipient, 'auditor-recipient': auditorRecipient, 'auditor-sender': auditorSender }
  return { from, to, spender, ephemeralKey, salt, ciphertexts }
}

/** Name, addresses and fields of an event; undefined if it is not XDR, or has topics other than addresses. */
export function decodeEvent(topics: readonly string[], data: string) {
  try {
    const [name, ...rest] = topics.map((topic) => xdr.ScVal.fromXdr(topic, 'base64'))
    if (name?.type !== 'scvSymbol' || rest.some(({ type }) => type !== 'scvAddress')) return undefined
    const value: unknown = scValToNative(xdr.ScVal.fromXdr(data, 'base64'))
    const fields = typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value)) : {}
    return { name: String(name.value), addresses: rest.map((topic) => Address.fromScVal(topic).toString()), fields }
  } catch {
    return undefined
  }
}

/** The public amount of a deposit, a withdrawal or a clawback; undefined if the event has no such amount. */
export function publicAmountIn({ amount }: Readonly<Record<string, unknown>>): bigint | undefined {
  return typeof amount === 'bigint' && amount >= 0n && amount < AMOUNT_LIMIT ? amount : undefined
}

function fieldIn(fields: Record<string, unknown>, name: string): Uint8Array | undefined {
  const value = fields[name]
  return value instanceof Uint8Array && value.length === 32 && isCanonical(value) ? new Uint8Array(value) : undefined
}

function pointIn(fields: Record<string, unknown>, name: string): Uint8Array | undefined {
  const value = fields[name]
  return value instanceof Uint8Array && isKey(value) ? new Uint8Array(value) : undefined
}

/** The account that a role discloses for. */
export function accountOf(payment: Pick<Payment, 'from' | 'to'>, role: DisclosureRole): string {
  return role === 'recipient' || role === 'auditor-recipient' ? payment.to : payment.from
}

/** Whether an account paid itself: nothing came in or went out, so no total may include it. */
export const isToItself = ({ from, to }: Pick<Payment, 'from' | 'to'>): boolean => from === to

/** The end is excluded. */
export function isWithin({ from, to }: { from: string; to: string }, { closedAt }: Pick<Payment, 'closedAt'>): boolean {
  const at = Date.parse(closedAt)
  return Date.parse(from) <= at && at < Date.parse(to)
}

/** The account whose keys encrypt a payment: a delegated one is sent by its spender. */
export const payerOf = ({ from, spender }: Pick<Payment, 'from' | 'spender'>): string => spender ?? from

const placeOf = ({ transaction, eventIndex }: Pick<LedgerEvent, 'transaction' | 'eventIndex'>) =>
  `event ${eventIndex} of transaction ${transaction}`
