import { type Digests, type ReferenceString, readKnownString } from './reference-string.ts'

/**
 * What the embedded ledger deploys: the project's own circuits, and a reference string whose secret anybody can derive.
 * The folders are relative to that of the project, in which every program of it runs; a build does not take them along.
 */
export const EMBEDDED_CIRCUITS = 'lib/prover/circuits'
export const EMBEDDED_STRING = 'lib/prover/reference-string'

/** A damaged file is named at the start, which costs a few milliseconds, and not by a proof that fails later. */
export function readEmbeddedString(): Promise<ReferenceString> {
  return readKnownString(EMBEDDED_STRING, DIGESTS, 'that of the embedded ledger')
}

const DIGESTS: Digests = {
  g1: '92f1c78d19661f62bc4fed72f1d196df69bf43d0ceaf95523aa341c4e22e54ae',
  g2: 'ac6c10696d9c5e780beec1ddbb075362cb16199d5b15cd68210ea1865f218154',
}
