import { type Digests, type ReferenceString, readKnownString } from './reference-string.ts'

/**
 * The folders of the embedded ledger: the project's own circuits, and a reference string whose secret anybody can
 * derive. They are relative to the project's folder, where every program runs, since a build does not bundle them.
 */
export const EMBEDDED_CIRCUITS = 'lib/prover/circuits'
export const EMBEDDED_STRING = 'lib/prover/reference-string'

/** The digests are checked, which takes milliseconds: otherwise a damaged file would show as a proof that fails. */
export function readEmbeddedString(): Promise<ReferenceString> {
  return readKnownString(EMBEDDED_STRING, DIGESTS, 'that of the embedded ledger')
}

const DIGESTS: Digests = {
  g1: '92f1c78d19661f62bc4fed72f1d196df69bf43d0ceaf95523aa341c4e22e54ae',
  g2: 'ac6c10696d9c5e780beec1ddbb075362cb16199d5b15cd68210ea1865f218154',
}
