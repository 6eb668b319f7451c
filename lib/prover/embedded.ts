/**
 * What the embedded ledger deploys: the project's own circuits, and a reference string whose secret anybody can derive.
 * The folders are relative to that of the project, in which every program of it runs; a build does not take them along.
 */
export const EMBEDDED_CIRCUITS = 'lib/prover/circuits'
export const EMBEDDED_STRING = 'lib/prover/reference-string'
