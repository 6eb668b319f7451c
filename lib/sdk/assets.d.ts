import type { CircuitName } from '#lib/prover/circuits.ts'

/** The embedded ledger's circuits and reference string, as modules that every bundler can split off. Written by pack.ts. */
export function loadCircuit(name: CircuitName): Promise<{ artifact: string; key: string }>

/** A file of `lib/prover/circuits/disclosure`, named without `.json`. */
export function loadDisclosureFile(name: string): Promise<{ content: string }>

/** Base64. */
export function loadReferenceString(): Promise<{ g1: string; g2: string }>
