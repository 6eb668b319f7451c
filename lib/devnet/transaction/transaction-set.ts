import { type Envelope, inclusionFee } from './envelope.ts'
import { add, compareRates, fits, type Kind, type LedgerLimits, ledgerRoom, NOTHING, roomOf } from './ledger-room.ts'
import { openStage, type Stage } from './ledger-stages.ts'
import { BASE_FEE } from './validity.ts'

/** A ledger's transactions of one kind. */
export interface Phase {
  /** the most stroops that each operation pays; above the minimum if some transactions didn't fit */
  readonly baseFee: bigint
  /** stages of parallel threads of transactions in order */
  readonly stages: readonly (readonly (readonly Envelope[])[])[]
}

/** The transactions of a ledger: classic ones first. */
export type TransactionSet = Readonly<Record<Kind, Phase>>

export const NO_TRANSACTIONS: TransactionSet = {
  classic: { baseFee: BASE_FEE, stages: [] },
  soroban: { baseFee: BASE_FEE, stages: [] },
}

/** Stages that core tries for a ledger. */
const MAX_STAGES = 4
/** Uses the fewest stages whose fees reach this share of the best, in thousandths. */
const WORTH_A_STAGE = 999n

/**
 * Sorts by bid per operation, highest first (core's surge pricing). If some don't fit, every transaction pays the rate of
 * the lowest included bid.
 */
export function assemble(kind: Kind, waiting: readonly Envelope[], limits: LedgerLimits): Phase {
  const ranked = waiting.toSorted((left, right) => compareRates(right, left) || byHash(left, right))
  if (kind === 'classic') {
    const { taken, isShort } = choose(ranked, limits, kind, () => true)
    return { baseFee: baseFeeOf(taken, isShort), stages: [[taken.toSorted(byHash)]] }
  }
  const candidates = Array.from({ length: MAX_STAGES }, (_, index) => stage(ranked, limits, index + 1))
  const best = candidates.reduce((most, { fees }) => (fees > most ? fees : most), 0n)
  const chosen = candidates.find(({ fees }) => fees * 1000n >= best * WORTH_A_STAGE)
  return { baseFee: chosen?.baseFee ?? BASE_FEE, stages: chosen?.stages ?? [] }
}

function stage(ranked: readonly Envelope[], limits: LedgerLimits, count: number): Phase & { fees: bigint } {
  const stages: Stage[] = Array.from({ length: count }, () => openStage(limits, count))
  const { taken, isShort } = choose(ranked, limits, 'soroban', (envelope) => stages.some((one) => one.add(envelope)))
  return {
    baseFee: baseFeeOf(taken, isShort),
    fees: taken.reduce((sum, envelope) => sum + inclusionFee(envelope), 0n),
    stages: stages.map((one) => one.threads().map((thread) => thread.toSorted(byHash))),
  }
}

function choose(
  ranked: readonly Envelope[],
  limits: LedgerLimits,
  kind: Kind,
  place: (envelope: Envelope) => boolean,
): { taken: Envelope[]; isShort: boolean } {
  const limit = ledgerRoom(limits, kind)
  let room = NOTHING
  const taken = ranked.filter((envelope) => {
    const next = add(room, roomOf(envelope))
    if (!fits(next, limit) || !place(envelope)) return false
    room = next
    return true
  })
  return { taken, isShort: taken.length < ranked.length }
}

function baseFeeOf(taken: readonly Envelope[], isShort: boolean): bigint {
  const rates = taken.map((envelope) => inclusionFee(envelope) / BigInt(envelope.operations))
  return isShort ? rates.reduce((least, rate) => (rate < least ? rate : least), rates[0] ?? BASE_FEE) : BASE_FEE
}

function byHash(left: Envelope, right: Envelope): number {
  return left.fullHash < right.fullHash ? -1 : 1
}
