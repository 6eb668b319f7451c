import { xdr } from '@stellar/stellar-sdk'
import type { RefusalReason } from '#lib/refusal/sponsor-refusal.ts'

type Resources = [instructions: number, diskReadBytes: number, writeBytes: number]

export function resources([instructions, diskReadBytes, writeBytes]: Resources): xdr.SorobanResources {
  const footprint = new xdr.LedgerFootprint({ readOnly: [], readWrite: [] })
  return new xdr.SorobanResources({ footprint, instructions, diskReadBytes, writeBytes })
}

const MOST = 2 ** 32 - 1
const NEED: Resources = [40_000_000, 1_200, 2_400]

/** Declared and needed: instructions, bytes read, bytes written. */
type ResourceCase = [name: string, declared: Resources, needed: Resources, reason?: RefusalReason]

export const RESOURCE_CASES: readonly ResourceCase[] = [
  ['just what is needed', NEED, NEED],
  ['less than is needed', [1, 1, 1], NEED, 'too-few-resources'],
  ['a byte too few to read', [40_000_000, 1_199, 2_400], NEED, 'too-few-resources'],
  ['a byte too few to write', [40_000_000, 1_200, 2_399], NEED, 'too-few-resources'],
  ['instructions without the margin', [100_000_000, 0, 0], [104_000_000, 0, 0]],
  ['one instruction fewer', [99_999_999, 0, 0], [104_000_000, 0, 0], 'too-few-resources'],
  ['few instructions without the margin', [950_000, 0, 0], [1_000_000, 0, 0]],
  ['few instructions and one fewer', [949_999, 0, 0], [1_000_000, 0, 0], 'too-few-resources'],
  ['nothing', [0, 0, 0], [0, 0, 0]],
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
  return rows.map(([name, declared, needed, verdict]) => {
    return [`instructions: ${name}`, [declared, 0, 0], [needed, 0, 0], verdict && 'excess-instructions']
  })
}

function bytes(rows: Row[]): ResourceCase[] {
  return rows.flatMap(([name, declared, needed, verdict]): ResourceCase[] => [
    [`bytes read: ${name}`, [0, declared, 0], [0, needed, 0], verdict && 'excess-bytes'],
    [`bytes written: ${name}`, [0, 0, declared], [0, 0, needed], verdict && 'excess-bytes'],
  ])
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
]

/** Errors of a node that cannot simulate: none says anything about the transaction. */
export const NODE_ERRORS = [
  'setting ContractComputeV0 is not present in the snapshot',
  'transaction source account GDX... is not found',
  'HostError: Error(Contract)',
  '',
]

/** The keys that are read and those that are written, by letters that stand for them. */
type Footprint = [readOnly: string, readWrite: string]

/** The footprint that is declared for a call that reads a, b and c, and writes x and y. */
export const FOOTPRINT_CASES: readonly [name: string, declared: Footprint, reason?: RefusalReason][] = [
  ['the same', ['abc', 'xy']],
  ['in another order', ['cab', 'yx']],
  ['writable where reading would do', ['bc', 'axy']],
  ['readable where it is written', ['abcx', 'y'], 'too-few-resources'],
  ['without one that is read', ['ab', 'xy'], 'too-few-resources'],
  ['without one that is written', ['abc', 'x'], 'too-few-resources'],
  ['four to spare', ['abcde', 'xyzw']],
  ['five to spare', ['abcdef', 'xyzw'], 'excess-footprint'],
]

export function footprint([readOnly, readWrite]: Footprint): xdr.LedgerFootprint {
  const keyOf = (letter: string) => {
    const hash = new Uint8Array(32).fill(letter.charCodeAt(0))
    return xdr.LedgerKey.contractCode(new xdr.LedgerKeyContractCode({ hash }))
  }
  return new xdr.LedgerFootprint({ readOnly: Array.from(readOnly, keyOf), readWrite: Array.from(readWrite, keyOf) })
}

/** A declared resource fee, in stroops, for a call that needs 80,000 and NEED, with the resources that were declared. */
export const FEE_CASES: readonly [name: string, fee: bigint, declared: Resources, reason?: RefusalReason][] = [
  ['of just the need', 80_000n, NEED],
  ['of one stroop', 1n, NEED, 'low-resource-fee'],
  ['below the need by what rent grows', 79_000n, NEED],
  ['a stroop less', 78_999n, NEED, 'low-resource-fee'],
  ['of twice the need and the slack', 260_000n, NEED],
  ['a stroop more', 260_001n, NEED, 'excess-resource-fee'],
  ['of the need, for more instructions than that', 80_000n, [50_000_000, 1_200, 2_400], 'low-resource-fee'],
  ['that pays for more instructions, too', 105_000n, [50_000_000, 1_200, 2_400]],
  ['of the need, for more bytes than that', 80_000n, [40_000_000, 1_200, 3_424], 'low-resource-fee'],
  ['for fewer instructions', 80_000n, [39_000_000, 1_200, 2_400]],
]
export const NEEDED = { fee: 80_000n, resources: resources(NEED) }
