import { type Envelope, inclusionFee } from './envelope.ts'

/** The resources of transactions, or the limits of a ledger or the queue (core's Resource). */
export interface Room {
  /** a fee bump counts one more than its inner transaction */
  readonly operations: number
  readonly instructions: number
  /** bytes of the inner envelopes */
  readonly transactionBytes: number
  readonly diskReadEntries: number
  readonly diskReadBytes: number
  readonly writeEntries: number
  readonly writeBytes: number
}

export type Kind = 'classic' | 'soroban'

export interface LedgerLimits {
  readonly classic: Pick<Room, 'operations'>
  /** `instructions` are the limit of one cluster, whose transactions run sequentially */
  readonly soroban: Room
  /** clusters that run in parallel */
  readonly clusters: number
}

/** Testnet's limits for a ledger since protocol 26 (SLP-4). */
export const NETWORK_LEDGER_LIMITS: LedgerLimits = {
  classic: { operations: 1_000 },
  soroban: {
    operations: 2_000,
    instructions: 580_000_000,
    transactionBytes: 266_240,
    diskReadEntries: 1_000,
    diskReadBytes: 400_000,
    writeEntries: 1_000,
    writeBytes: 286_720,
  },
  clusters: 2,
}

/** Wider limits, for measurements and for tests that aren't about scarce room. */
export function multiplyLimits({ classic, soroban, clusters }: LedgerLimits, factor: number): LedgerLimits {
  return {
    classic: { operations: classic.operations * factor },
    soroban: combine(soroban, NOTHING, (room) => room * factor),
    clusters,
  }
}

/** Ledgers' worth of transactions that the queue holds (core's defaults). */
const QUEUE_LEDGERS: Record<Kind, number> = { classic: 4, soroban: 2 }

export const NOTHING: Room = {
  operations: 0,
  instructions: 0,
  transactionBytes: 0,
  diskReadEntries: 0,
  diskReadBytes: 0,
  writeEntries: 0,
  writeBytes: 0,
}
const RESOURCES = Object.keys(NOTHING) as (keyof Room)[]

export const kindOf = (envelope: Envelope): Kind => (envelope.inner.isSoroban ? 'soroban' : 'classic')

/** The resources that an envelope declares. A classic envelope declares only operations. */
export function roomOf({ operations, inner }: Envelope): Room {
  const resources = inner.soroban?.resources
  if (!inner.isSoroban || !resources) return { ...NOTHING, operations }
  const { readOnly, readWrite } = resources.footprint
  const fromDisk = [...readOnly, ...readWrite].filter(({ type }) => type === 'account' || type === 'trustline')
  return {
    operations,
    instructions: resources.instructions,
    transactionBytes: inner.size,
    diskReadEntries: fromDisk.length,
    diskReadBytes: resources.diskReadBytes,
    writeEntries: readWrite.length,
    writeBytes: resources.writeBytes,
  }
}

/** The room of one ledger. Classic transactions are only limited by operations. */
export function ledgerRoom(limits: LedgerLimits, kind: Kind): Room {
  if (kind === 'classic') return { ...combine(NOTHING, NOTHING, () => Number.MAX_SAFE_INTEGER), ...limits.classic }
  return { ...limits.soroban, instructions: limits.soroban.instructions * limits.clusters }
}

export function queueRoom(limits: LedgerLimits, kind: Kind): Room {
  return combine(ledgerRoom(limits, kind), NOTHING, (room) => room * QUEUE_LEDGERS[kind])
}

export const add = (left: Room, right: Room): Room => combine(left, right, (one, other) => one + other)
/** Negative differences become 0. */
export const subtract = (left: Room, right: Room): Room =>
  combine(left, right, (one, other) => Math.max(0, one - other))
export const fits = (room: Room, limit: Room): boolean => RESOURCES.every((name) => room[name] <= limit[name])
export const isEmpty = (room: Room): boolean => fits(room, NOTHING)

function combine(left: Room, right: Room, join: (left: number, right: number) => number): Room {
  const joined: Record<keyof Room, number> = { ...NOTHING }
  for (const name of RESOURCES) joined[name] = join(left[name], right[name])
  return joined
}

/** Negative if `left` bids less per operation than `right`. */
export function compareRates(left: Envelope, right: Envelope): number {
  const difference = inclusionFee(left) * BigInt(right.operations) - inclusionFee(right) * BigInt(left.operations)
  return difference < 0n ? -1 : difference > 0n ? 1 : 0
}

/** The total fee at which `envelope` just outbids `other` per operation (core's computeBetterFee). */
export function betterFee(envelope: Envelope, other: Envelope): bigint {
  const inclusion = (inclusionFee(other) * BigInt(envelope.operations)) / BigInt(other.operations) + 1n
  return inclusion + envelope.resourceFee
}
