import { xdr } from '@stellar/stellar-sdk'
import type { RefusalReason } from '#lib/refusal/sponsor-refusal.ts'

/** Declared and needed: instructions, bytes read, bytes written. */
interface ResourceCase {
  name: string
  declared: Resources
  needed: Resources
  reason?: RefusalReason
}

type Resources = [instructions: number, diskReadBytes: number, writeBytes: number]

export function resources([instructions, diskReadBytes, writeBytes]: Resources): xdr.SorobanResources {
  const footprint = new xdr.LedgerFootprint({ readOnly: [], readWrite: [] })
  return new xdr.SorobanResources({ footprint, instructions, diskReadBytes, writeBytes })
}

const MOST = 2 ** 32 - 1

export const RESOURCE_CASES: readonly ResourceCase[] = [
  { name: 'just what is needed', declared: [40_000_000, 1_200, 2_400], needed: [40_000_000, 1_200, 2_400] },
  { name: 'less than is needed', declared: [1, 1, 1], needed: [40_000_000, 1_200, 2_400], reason: 'too-few-resources' },
  {
    name: 'a byte too few to read',
    declared: [40_000_000, 1_199, 2_400],
    needed: [40_000_000, 1_200, 2_400],
    reason: 'too-few-resources',
  },
  {
    name: 'a byte too few to write',
    declared: [40_000_000, 1_200, 2_399],
    needed: [40_000_000, 1_200, 2_400],
    reason: 'too-few-resources',
  },
  { name: 'instructions without the margin', declared: [100_000_000, 0, 0], needed: [104_000_000, 0, 0] },
  {
    name: 'one instruction fewer',
    declared: [99_999_999, 0, 0],
    needed: [104_000_000, 0, 0],
    reason: 'too-few-resources',
  },
  { name: 'few instructions without the margin', declared: [950_000, 0, 0], needed: [1_000_000, 0, 0] },
  {
    name: 'few instructions and one fewer',
    declared: [949_999, 0, 0],
    needed: [1_000_000, 0, 0],
    reason: 'too-few-resources',
  },
  { name: 'nothing', declared: [0, 0, 0], needed: [0, 0, 0] },
  ...instructions([
    ['a quarter more', 50_000_000, 40_000_000],
    ['a quarter more and one', 50_000_001, 40_000_000, 'refused'],
    ['a quarter more, the fraction cut', 50_000_003, 40_000_003],
    ['a quarter more, the fraction rounded up', 50_000_004, 40_000_003, 'refused'],
    ['a million more', 2_000_000, 1_000_000],
    ['a million more and one', 2_000_001, 1_000_000, 'refused'],
    ['where a quarter is a million', 5_000_000, 4_000_000],
    ['where a quarter is a million, and one', 5_000_001, 4_000_000, 'refused'],
    ['a million for nothing', 1_000_000, 0],
    ['a million and one for nothing', 1_000_001, 0, 'refused'],
    ['all there is', MOST, 100_000_000, 'refused'],
    ['all there is, needed', MOST, MOST],
  ]),
  ...bytes([
    ['1 KiB more', 2_224, 1_200],
    ['1 KiB more and one', 2_225, 1_200, 'refused'],
    ['where a quarter is 1 KiB', 5_120, 4_096],
    ['where a quarter is 1 KiB, and one', 5_121, 4_096, 'refused'],
    ['a quarter more', 12_500, 10_000],
    ['a quarter more and one', 12_501, 10_000, 'refused'],
    ['1 KiB for nothing', 1_024, 0],
    ['1 KiB and one for nothing', 1_025, 0, 'refused'],
    ['all there is', MOST, 10_000, 'refused'],
  ]),
]

type Row = [name: string, declared: number, needed: number, verdict?: 'refused']

function instructions(rows: Row[]): ResourceCase[] {
  return rows.map(([name, declared, needed, verdict]) => ({
    name: `instructions: ${name}`,
    declared: [declared, 0, 0],
    needed: [needed, 0, 0],
    ...(verdict ? { reason: 'excess-instructions' as const } : {}),
  }))
}

function bytes(rows: Row[]): ResourceCase[] {
  return rows.flatMap(([name, declared, needed, verdict]) => {
    const reason = verdict ? { reason: 'excess-bytes' as const } : {}
    return [
      { name: `bytes read: ${name}`, declared: [0, declared, 0], needed: [0, needed, 0], ...reason },
      { name: `bytes written: ${name}`, declared: [0, 0, declared], needed: [0, 0, needed], ...reason },
    ] satisfies ResourceCase[]
  })
}

/** The host's message, and the part of it that the caller may read. All are `would-fail`. */
export const HOST_ERRORS: readonly [print: string, detail: string][] = [
  [
    'HostError: Error(Contract, #3506)\n\nEvent log (newest first):\n   0: [Diagnostic Event]',
    'Error(Contract, #3506)',
  ],
  ['HostError: Error(Contract, #0)', 'Error(Contract, #0)'],
  ['HostError: Error(WasmVm, InvalidAction)\n\nEvent log', 'Error(WasmVm, InvalidAction)'],
  ['HostError: Error(Auth, InvalidAction)\nDebugInfo not available', 'Error(Auth, InvalidAction)'],
  ['HostError: Error(Budget, ExceededLimit)', 'Error(Budget, ExceededLimit)'],
  ['HostError: Error(Value, UnexpectedType)\n data:["Error(Contract, #1)"]', 'Error(Value, UnexpectedType)'],
  ['transaction source account GDX... is not found', 'it cannot be simulated'],
  ['HostError: Error(Contract)', 'it cannot be simulated'],
  ['', 'it cannot be simulated'],
]

/** Declared and needed footprints, by the first letters of made-up keys. */
interface FootprintCase {
  name: string
  declared: { readOnly: string; readWrite: string }
  needed: { readOnly: string; readWrite: string }
  reason?: RefusalReason
}

const call = { readOnly: 'abc', readWrite: 'xy' }

export const FOOTPRINT_CASES: readonly FootprintCase[] = [
  { name: 'the same', declared: call, needed: call },
  { name: 'in another order', declared: { readOnly: 'cab', readWrite: 'yx' }, needed: call },
  { name: 'writable where reading would do', declared: { readOnly: 'bc', readWrite: 'axy' }, needed: call },
  {
    name: 'readable where it is written',
    declared: { readOnly: 'abcx', readWrite: 'y' },
    needed: call,
    reason: 'too-few-resources',
  },
  {
    name: 'without one that is read',
    declared: { readOnly: 'ab', readWrite: 'xy' },
    needed: call,
    reason: 'too-few-resources',
  },
  {
    name: 'without one that is written',
    declared: { readOnly: 'abc', readWrite: 'x' },
    needed: call,
    reason: 'too-few-resources',
  },
  { name: 'four to spare', declared: { readOnly: 'abcde', readWrite: 'xyzw' }, needed: call },
  {
    name: 'five to spare',
    declared: { readOnly: 'abcdef', readWrite: 'xyzw' },
    needed: call,
    reason: 'excess-footprint',
  },
]

/** Keys represented by letters. */
export function footprint({ readOnly, readWrite }: { readOnly: string; readWrite: string }): xdr.LedgerFootprint {
  const keys = (letters: string) =>
    Array.from(letters, (letter) =>
      xdr.LedgerKey.contractCode(
        new xdr.LedgerKeyContractCode({ hash: new Uint8Array(32).fill(letter.charCodeAt(0)) }),
      ),
    )
  return new xdr.LedgerFootprint({ readOnly: keys(readOnly), readWrite: keys(readWrite) })
}

const NEED: Resources = [40_000_000, 1_200, 2_400]
const SAME: [Resources, Resources] = [NEED, NEED]

/** A declared resource fee and the need, in stroops, with the resources that were declared and needed. */
export const FEE_CASES: readonly {
  name: string
  declared: bigint
  needed: bigint
  resources: [declared: Resources, needed: Resources]
  reason?: RefusalReason
}[] = [
  { name: 'of just the need', declared: 80_000n, needed: 80_000n, resources: SAME },
  { name: 'of one stroop', declared: 1n, needed: 80_000n, resources: SAME, reason: 'low-resource-fee' },
  { name: 'below the need by what rent grows', declared: 79_000n, needed: 80_000n, resources: SAME },
  { name: 'a stroop less', declared: 78_999n, needed: 80_000n, resources: SAME, reason: 'low-resource-fee' },
  { name: 'of twice the need and the slack', declared: 260_000n, needed: 80_000n, resources: SAME },
  { name: 'a stroop more', declared: 260_001n, needed: 80_000n, resources: SAME, reason: 'excess-resource-fee' },
  {
    name: 'of the need, for more instructions than that',
    declared: 80_000n,
    needed: 80_000n,
    resources: [[50_000_000, 1_200, 2_400], NEED],
    reason: 'low-resource-fee',
  },
  {
    name: 'that pays for more instructions, too',
    declared: 105_000n,
    needed: 80_000n,
    resources: [[50_000_000, 1_200, 2_400], NEED],
  },
  {
    name: 'of the need, for more bytes than that',
    declared: 80_000n,
    needed: 80_000n,
    resources: [[40_000_000, 1_200, 3_424], NEED],
    reason: 'low-resource-fee',
  },
  { name: 'for fewer instructions', declared: 80_000n, needed: 80_000n, resources: [[39_000_000, 1_200, 2_400], NEED] },
]
