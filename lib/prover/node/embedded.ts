import type { ReferenceString } from '../backend.ts'
import { REQUIRED_CIRCUITS } from '../circuits.ts'
import { EMBEDDED_DIGESTS } from '../string-digests.ts'
import { readVerificationKeys } from './circuit-folder.ts'
import { readKnownString } from './reference-string.ts'

/**
 * The folders of the embedded ledger: this project's circuits, and a reference string whose secret anyone can derive.
 * They are relative to the project's folder, in which every program runs, since a build does not bundle them.
 */
export const EMBEDDED_CIRCUITS = 'lib/prover/circuits'
export const EMBEDDED_STRING = 'lib/prover/reference-string'

/** Whether the verification keys in a folder were made under the embedded ledger's reference string. @throws ProverError */
export async function hasEmbeddedKeys(folder: string): Promise<boolean> {
  const keys = await readVerificationKeys(folder)
  // A build that runs without npm does not have them.
  const own = await readVerificationKeys(EMBEDDED_CIRCUITS).catch(() => undefined)
  return own !== undefined && REQUIRED_CIRCUITS.some((name) => Buffer.compare(keys[name], own[name]) === 0)
}

/** Checks the digests, which takes milliseconds: otherwise damage would show up only as a failing proof. */
export function readEmbeddedString(): Promise<ReferenceString> {
  return readKnownString(EMBEDDED_STRING, EMBEDDED_DIGESTS, 'that of the embedded ledger')
}
