import { concatBytes } from '@noble/hashes/utils.js'
import type { DisclosureCircuit } from '#lib/prover/disclosure-circuits.ts'
import { encodeField } from '#lib/wallet/grumpkin.ts'
import { addressToField } from '#lib/wallet/keys.ts'
import { type Payment, payerOf } from './payment.ts'
import type { Addressee, Sealed } from './sealing.ts'

/** The registered viewing keys (64 bytes) of the accounts in an event. */
export type ViewingKeys = ReadonlyMap<string, Uint8Array>

/** The public values of a disclosure, from the ledger, from the request, and (`sealed` alone) from the bundle. */
export interface DisclosureStatement {
  circuit: DisclosureCircuit
  token: string
  /** The viewing key of the account, or the key of the auditor. A sender's payments have a key each. */
  key?: Uint8Array | undefined
  /** Commitment to the account's balance, for a balance. */
  spendable?: Uint8Array | undefined
  payments: readonly Payment[]
  viewingKeys: ViewingKeys
  addressee: Addressee
  /** One of the two. */
  disclosed: { sealed: Sealed } | { threshold: bigint }
}

/** The public inputs of a disclosure, 32 bytes each, in the order of the circuit's parameters. */
export function publicInputs(statement: DisclosureStatement): Uint8Array {
  const { circuit, token, key, spendable, payments, addressee, disclosed } = statement
  const ofToken = encodeField(addressToField(token))
  const isAudit = circuit.kind !== 'balance' && circuit.role.startsWith('auditor')
  const slots = payments.map((payment) => slotOf(statement, payment))
  const [{ length: words } = new Uint8Array()] = slots
  return concatBytes(
    ...(isAudit ? [] : [ofToken]),
    ...(key ? [key] : []),
    ...(spendable ? [spendable] : []),
    ...(circuit.kind === 'total' ? [encodeField(BigInt(payments.length))] : []),
    ...slots,
    ...Array.from({ length: circuit.slots - slots.length }, () => new Uint8Array(words)),
    addressee.key,
    addressee.nonce,
    ...('sealed' in disclosed ? [disclosed.sealed.key, disclosed.sealed.value] : [encodeField(disclosed.threshold)]),
  )
}

function slotOf({ circuit, viewingKeys }: DisclosureStatement, payment: Payment): Uint8Array {
  if (circuit.kind === 'balance') throw new Error('a balance has no payments')
  const { ephemeralKey, salt, ciphertexts } = payment
  if (circuit.role !== 'sender') return concatBytes(ephemeralKey, salt, ciphertexts[circuit.role])
  const payer = viewingKeys.get(payerOf(payment))
  const payee = viewingKeys.get(payment.to)
  if (!payer || !payee) throw new Error('the viewing keys of the payment are missing')
  return concatBytes(payer, ephemeralKey, salt, ciphertexts.recipient, payee)
}
