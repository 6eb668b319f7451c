import type { xdr } from '@stellar/stellar-sdk'
import type { Change } from './state.ts'

/** Network limits per transaction (core's testnet settings for protocol 28). Sizes in bytes. */
export const NETWORK_LIMITS = {
  instructions: 400_000_000,
  footprintEntries: 400,
  diskReadEntries: 200,
  diskReadBytes: 200_000,
  writeEntries: 200,
  writeBytes: 132_096,
  transactionBytes: 132_096,
  eventBytes: 16_384,
  codeBytes: 131_072,
  keyBytes: 250,
  entryBytes: 65_536,
  persistentTtl: 120_960,
  temporaryTtl: 720,
  maximumTtl: 3_110_400,
} as const

/** Fee rates in stroops (core's testnet settings for protocol 28). */
export const FEE_RATES = {
  per10kInstructions: 7n,
  diskReadEntry: 1_563n,
  writeEntry: 2_500n,
  diskRead1Kb: 447n,
  write1Kb: 875n,
  historical1Kb: 4_059n,
  events1Kb: 5_000n,
  transaction1Kb: 406n,
  rent1Kb: 1_000n,
  persistentRentDenominator: 1_215n,
  temporaryRentDenominator: 2_430n,
} as const

export function nonRefundableFee(_resources: xdr.SorobanResources, _envelopeBytes: number): bigint {
  throw new Error('not built yet')
}

export function rentFee(_changes: Change[], _ledgerSequence: number): bigint {
  throw new Error('not built yet')
}

export function eventsFee(_bytes: number): bigint {
  throw new Error('not built yet')
}
