import { xdr } from '@stellar/stellar-sdk'
import { z } from 'zod'
import { sponsorRefused } from '#lib/refusal/sponsor-refusal.ts'
import type { AccountReading } from '#lib/stellar/account.ts'
import { isArchived, isExtendable, markedAsArchived, readEntries } from '#lib/stellar/entries.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import type { Network } from '#lib/stellar/network.ts'
import { encodeSigned, type SignedTransaction } from '#lib/stellar/node/envelope.ts'
import { hostErrorIn, untilHostAnswers } from '#lib/stellar/simulation.ts'
import type { CallSimulation } from '#lib/wallet/transaction.ts'

const SIMULATION = z.object({
  latestLedger: z.number().int(),
  error: z.string().optional(),
  transactionData: z.string().optional(),
  minResourceFee: z.string().regex(/^\d+$/).optional(),
})

/** The ledger's state that a caller in this process has read for a transaction that it has just signed. */
export interface LedgerCheck {
  /** of the same call, with authorization enforced */
  simulation: CallSimulation
  /** of the source account */
  account: AccountReading
}

/**
 * Simulates `inner` on the network's current state with authorization enforced, so that a transaction that would fail is
 * refused before it costs anything: a failed one costs the sponsor as much as a successful one.
 * @throws SponsorRefusal `would-fail` with the host's error; Refusal `unavailable`
 */
export async function simulate(network: Network, inner: SignedTransaction): Promise<CallSimulation> {
  const transaction = encodeSigned(inner)
  const ask = () => network.call('simulateTransaction', { transaction, authMode: 'enforce' }, SIMULATION)
  const answer = await untilHostAnswers(ask, ({ error }) => error)
  if (answer.error !== undefined) {
    throw sponsorRefused('would-fail', { detail: hostErrorIn(answer.error), asOf: answer.latestLedger })
  }
  const { latestLedger, minResourceFee } = answer
  if (minResourceFee === undefined) throw unreadable()
  const data = decodeData(answer.transactionData ?? '')
  const { resources } = data
  return { resources, archived: markedAsArchived(data), minResourceFee: BigInt(minResourceFee), latestLedger }
}

/** @throws LedgerError `unavailable`: a response without resources neither confirms nor rules out success */
function decodeData(transactionData: string): xdr.SorobanTransactionData {
  try {
    return xdr.SorobanTransactionData.fromXdr(transactionData, 'base64')
  } catch (cause) {
    throw unreadable(cause)
  }
}

const unreadable = (cause?: unknown) =>
  new LedgerError('unavailable', "the RPC's answer to the simulation cannot be read", { cause })

/**
 * Non-refundable fees depend on the declared resources, not on those used, so these may exceed the need by a quarter, or by a
 * small absolute amount if that is more. With too little the transaction fails in the ledger, at the sponsor's cost, and
 * simulation doesn't notice.
 * @param needed the resources from the simulation, its margins included
 * @throws SponsorRefusal
 */
export function checkResources(declared: xdr.SorobanResources, needed: xdr.SorobanResources): void {
  if (declared.instructions > allowance(needed.instructions, 1_000_000)) throw sponsorRefused('excess-instructions')
  const tooManyRead = declared.diskReadBytes > allowance(needed.diskReadBytes, 1024)
  if (tooManyRead || declared.writeBytes > allowance(needed.writeBytes, 1024)) throw sponsorRefused('excess-bytes')
  const tooLittle =
    declared.instructions < withoutMargin(needed.instructions) ||
    declared.diskReadBytes < needed.diskReadBytes ||
    declared.writeBytes < needed.writeBytes
  if (tooLittle) throw sponsorRefused('too-few-resources')
  checkFootprint(declared.footprint, needed.footprint)
}

/** Stroops by which a declared resource fee may exceed twice the need, on top of a month of rent. */
const FEE_SLACK = 100_000n

/** The maximum growth, in stroops, of the entries' rent between signing and application. */
const RENT_DRIFT = 1_000n

/** Stroops of rent for 30 days, to which the contract extends an entry, at testnet's rates and with the RPC's 15 percent. */
const MONTH_OF_RENT = { byte: 480n, entry: 3_000n }

/** The bytes assumed for an entry that is only read. Simulation reports no size for these; an auditor's key has 160. */
const READ_ENTRY_BYTES = 256n

/** Stroops, at the highest fees that a network has asked: for 10,000 instructions, a byte, an entry of the footprint. */
const DEAREST = { instructions: 25, byte: 12, entry: 10_000 }

/** Resources, and their fee in stroops. */
type Priced = { fee: bigint; resources: xdr.SorobanResources }

/**
 * Compares the declared resource fee with the call's need. The network first charges for the declared resources, and the
 * rest must cover rent and events, or the transaction fails in the ledger, at the sponsor's cost: so a declaration beyond the
 * need must be paid for. A fee far above it would only tie up the sponsor's float, except for rent: the first payment between two
 * accounts extends the lifetime of their entries, and another transaction may pay for that before this one is checked.
 * @param needed from the simulation, its margins included
 * @throws SponsorRefusal
 */
export function checkResourceFee(declared: Priced, needed: Priced): void {
  const extra = feeOfExcess(declared.resources, needed.resources)
  if (declared.fee + RENT_DRIFT < needed.fee + extra) throw sponsorRefused('low-resource-fee')
  const limit = 2n * needed.fee + FEE_SLACK + monthOfRent(needed.resources)
  if (declared.fee > limit) throw sponsorRefused('excess-resource-fee')
}

/** The maximum rent, in stroops, that the call may have needed before another transaction extended the same entries. */
function monthOfRent({ footprint, writeBytes }: xdr.SorobanResources): bigint {
  const readOnly = BigInt(footprint.readOnly.filter(isExtendable).length)
  const readWrite = BigInt(footprint.readWrite.filter(isExtendable).length)
  const bytes = readOnly * READ_ENTRY_BYTES + (readWrite > 0n ? BigInt(writeBytes) : 0n)
  return bytes * MONTH_OF_RENT.byte + (readOnly + readWrite) * MONTH_OF_RENT.entry
}

function feeOfExcess(declared: xdr.SorobanResources, needed: xdr.SorobanResources): bigint {
  const above = (measure: (one: xdr.SorobanResources) => number) => Math.max(0, measure(declared) - measure(needed))
  const instructions = above((resources) => resources.instructions)
  const bytes = above((resources) => resources.diskReadBytes) + above((resources) => resources.writeBytes)
  const entries = above(({ footprint }) => footprint.readOnly.length + 2 * footprint.readWrite.length)
  const { instructions: rate, byte, entry } = DEAREST
  return BigInt(Math.ceil((instructions * rate) / 10_000) + bytes * byte + entries * entry)
}

const allowance = (need: number, slack: number) => Math.max(Math.floor(need * 1.25), need + slack)

/** Simulation adds 4 percent to the instructions, or 50,000 where that is more. */
const withoutMargin = (instructions: number) => Math.floor(Math.min(instructions / 1.04, instructions - 50_000))

/** How many more entries than the call touches may be declared: each costs a fee, whether it is used or not. */
const SPARE_ENTRIES = 4

function checkFootprint(declared: xdr.LedgerFootprint, needed: xdr.LedgerFootprint): void {
  const writable = new Set(declared.readWrite.map(nameOf))
  const covering = new Set([...declared.readOnly.map(nameOf), ...writable])
  const isWritable = needed.readWrite.every((key) => writable.has(nameOf(key)))
  if (!isWritable || !needed.readOnly.every((key) => covering.has(nameOf(key))))
    throw sponsorRefused('too-few-resources')
  if (covering.size > needed.readOnly.length + needed.readWrite.length + SPARE_ENTRIES) {
    throw sponsorRefused('excess-footprint')
  }
}

/** The part of a transaction that names ledger entries. */
interface Entries {
  resources: xdr.SorobanResources
  /** keys, base64 */
  archived: readonly string[]
}

/**
 * A transaction that names an archived entry without marking it fails on the ledger, and restoring an entry that the call does
 * not need costs a fee. The simulation shows which entries the call touches; any others are looked up.
 * @throws SponsorRefusal; LedgerError `unavailable`
 */
export async function checkArchived({ server }: Network, declared: Entries, needed: Entries): Promise<void> {
  if (!needed.archived.every((key) => declared.archived.includes(key))) throw sponsorRefused('too-few-resources')
  const touched = new Set(keysOf(needed).map(nameOf))
  if (!declared.archived.every((key) => touched.has(key))) throw sponsorRefused('excess-footprint')
  const untouched = keysOf(declared).filter((key) => !touched.has(nameOf(key)))
  const spare = untouched.filter(({ type }) => type === 'contractData' || type === 'contractCode')
  // The RPC rejects a call with any other key, and with it the readings that share the call.
  const isForeign = untouched.some((key) => !spare.includes(key) && key.type !== 'account' && key.type !== 'trustline')
  if (isForeign) throw sponsorRefused('excess-footprint')
  if (spare.length === 0) return
  const { entries, latestLedger } = await readEntries(server, spare)
  if (entries.some((entry) => entry && isArchived(entry, latestLedger))) throw sponsorRefused('excess-footprint')
}

const nameOf = (key: xdr.LedgerKey) => key.toXdr('base64')
const keysOf = ({ resources: { footprint } }: Entries) => [...footprint.readOnly, ...footprint.readWrite]
