/** Who discloses a payment. An auditor reads the recipient's or the sender's channel. */
export const DISCLOSURE_ROLES = ['recipient', 'sender', 'auditor-recipient', 'auditor-sender'] as const
export type DisclosureRole = (typeof DISCLOSURE_ROLES)[number]

/** The slots of the circuits over several payments. A sender's slots need more gates: each has a separate key. */
export const SLOTS = {
  recipient: [10, 27],
  sender: [4, 10],
  'auditor-recipient': [10, 27],
  'auditor-sender': [10, 27],
} as const satisfies Record<DisclosureRole, readonly [number, number]>

/** What a circuit reveals: a value that is sealed to the requester, or that a public threshold is met. */
export type Disclosed = 'value' | 'at-least' | 'at-most'

/** One payment, a total over at most `slots` payments, or a balance. */
export type DisclosureCircuit =
  | { name: DisclosureCircuitName; kind: 'payment'; role: DisclosureRole; slots: 1; disclosed: 'value' }
  | { name: DisclosureCircuitName; kind: 'total'; role: DisclosureRole; slots: number; disclosed: 'value' | 'at-least' }
  | { name: DisclosureCircuitName; kind: 'balance'; slots: 0; disclosed: Disclosed }

type PaymentName = `payment-${DisclosureRole}`
type TotalName = {
  [Role in DisclosureRole]: `${'total' | 'total-at-least'}-${Role}-${(typeof SLOTS)[Role][number]}`
}[DisclosureRole]
type BalanceName = 'balance-value' | 'balance-at-least' | 'balance-at-most'
export type DisclosureCircuitName = PaymentName | TotalName | BalanceName

const payments = DISCLOSURE_ROLES.map(
  (role): DisclosureCircuit => ({ name: `payment-${role}`, kind: 'payment', role, slots: 1, disclosed: 'value' }),
)
const totals = DISCLOSURE_ROLES.flatMap((role) =>
  SLOTS[role].flatMap((slots): DisclosureCircuit[] => [
    { name: `total-${role}-${slots}` as TotalName, kind: 'total', role, slots, disclosed: 'value' },
    { name: `total-at-least-${role}-${slots}` as TotalName, kind: 'total', role, slots, disclosed: 'at-least' },
  ]),
)
const balances = (['value', 'at-least', 'at-most'] as const).map(
  (disclosed): DisclosureCircuit => ({ name: `balance-${disclosed}`, kind: 'balance', slots: 0, disclosed }),
)

/** Every circuit of a disclosure. Their proofs are verified off the ledger only. */
export const DISCLOSURE_CIRCUITS: readonly DisclosureCircuit[] = [...payments, ...totals, ...balances]

export function findDisclosureCircuit(name: string): DisclosureCircuit | undefined {
  return DISCLOSURE_CIRCUITS.find((circuit) => circuit.name === name)
}
