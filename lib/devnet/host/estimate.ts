import { xdr } from '@stellar/stellar-sdk'
import type { State } from '../state/state.ts'
import { eventsFee, nonRefundableFee, rentFee } from '../transaction/fees.ts'
import type { InvocationResult } from './invocation.ts'
import { diskReadBytes, eventBytes, writeBytes } from './resources.ts'

/**
 * The bytes of an envelope without its operation and Soroban data, as the RPC estimates them: muxed sources, every
 * precondition, a 32-byte memo, 20 signatures.
 */
const ENVELOPE_BYTES = 4 + 44 + 4 + 8 + 272 + 36 + 4 + (4 + 44 + 4) + 4 + (4 + 20 * 72)
const LEEWAY = 50_000

/**
 * The resources that a transaction with this call must declare (stellar-rpc's adjustments): instructions 4 % or the
 * leeway above the need, room for signatures, 15 % more rent and events.
 */
export function estimateResources(simulated: {
  readonly run: Extract<InvocationResult, { ok: true }>
  readonly before: State
  /** the layer with the call's writes */
  readonly state: State
  readonly sequence: number
  readonly operation: xdr.InvokeHostFunctionOp
  /** instructions */
  readonly leeway: number
}): xdr.SorobanTransactionData {
  const { run, before, state, sequence, operation, leeway } = simulated
  const { footprint, instructions } = run
  const resources = new xdr.SorobanResources({
    footprint,
    instructions: withLeeway(instructions, leeway),
    diskReadBytes: diskReadBytes(before, footprint),
    writeBytes: writeBytes(state, footprint),
  })
  const refundable = rentFee(state.changes(), sequence) + eventsFee(eventBytes(run.events, run.returnValue))
  const withFee = (resourceFee: bigint) =>
    new xdr.SorobanTransactionData({ ext: xdr.SorobanTransactionDataExt.v0(), resources, resourceFee })
  const size = ENVELOPE_BYTES + operation.toXdr().length + withFee(0n).toXdr().length
  const roomy = Math.max(Math.floor((size * 11) / 10), size + 500)
  return withFee(nonRefundableFee(resources, roomy) + (refundable * 115n) / 100n)
}

/** Declared instructions have 32 bits. */
function withLeeway(instructions: number, requested: number): number {
  const roomy = Math.max(Math.floor((instructions * 104) / 100), instructions + Math.max(requested, LEEWAY))
  return Math.min(roomy, 0xffff_ffff)
}
