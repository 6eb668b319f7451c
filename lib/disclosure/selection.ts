import type { DisclosureCircuit } from '#lib/prover/disclosure-circuits.ts'
import { MAX_BUNDLES } from './bundle.ts'
import { DisclosureError } from './disclosure-error.ts'
import type { OpenedPayment } from './opening.ts'

/** The payments of one proof, and its circuit. */
export interface Part {
  circuit: DisclosureCircuit
  payments: OpenedPayment[]
}

/**
 * Splits the payments of a total over the circuits, given with the smallest first: as few proofs as possible, each with the
 * smallest circuit that has enough slots.
 * @throws DisclosureError `too-many-payments` if a file cannot contain that many proofs
 */
export function splitTotal(circuits: readonly DisclosureCircuit[], payments: readonly OpenedPayment[]): Part[] {
  const most = mostSlots(circuits)
  if (payments.length > MAX_BUNDLES * most) {
    const reason = `a file contains at most ${MAX_BUNDLES} proofs of ${most} payments each: request shorter periods`
    throw new DisclosureError('too-many-payments', `${payments.length} payments are too many: ${reason}`)
  }
  const parts: Part[] = []
  for (let start = 0; start < payments.length; start += most) {
    const part = payments.slice(start, start + most)
    parts.push({ circuit: smallestFor(circuits, part.length), payments: part })
  }
  return parts
}

/**
 * The fewest payments that reach a threshold, for one proof.
 * @throws DisclosureError `not-true` if even all of them don't reach it, `too-many-payments` if no circuit has enough
 *   slots
 */
export function choosePayments(
  circuits: readonly DisclosureCircuit[],
  payments: readonly OpenedPayment[],
  threshold: bigint,
): Part {
  const descending = payments.toSorted((one, other) => (one.value < other.value ? 1 : -1))
  const chosen: OpenedPayment[] = []
  let sum = 0n
  for (const payment of descending) {
    if (sum >= threshold && chosen.length > 0) break
    chosen.push(payment)
    sum += payment.value
  }
  if (chosen.length === 0 || sum < threshold) {
    throw new DisclosureError('not-true', 'the payments of this period do not reach the threshold')
  }
  const most = mostSlots(circuits)
  if (chosen.length > most) {
    throw new DisclosureError(
      'too-many-payments',
      `no ${most} payments reach the threshold, and one proof takes no more`,
    )
  }
  return { circuit: smallestFor(circuits, chosen.length), payments: chosen }
}

const mostSlots = (circuits: readonly DisclosureCircuit[]): number => Math.max(...circuits.map(({ slots }) => slots))

function smallestFor(circuits: readonly DisclosureCircuit[], count: number): DisclosureCircuit {
  const fitting = circuits.filter(({ slots }) => slots >= count).toSorted((one, other) => one.slots - other.slots)
  if (!fitting[0]) throw new Error('no circuit has enough slots')
  return fitting[0]
}
