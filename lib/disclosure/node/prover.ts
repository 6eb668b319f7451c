import { availableParallelism, homedir } from 'node:os'
import { openBackend } from '#lib/prover/backend.ts'
import { KEY_SET_DIGESTS, type KeySetName, keySetOf } from '#lib/prover/key-set.ts'
import { EMBEDDED_STRING } from '#lib/prover/node/embedded.ts'
import { fetchReferenceString, isComplete, readKnownString } from '#lib/prover/node/reference-string.ts'
import { watchWorker } from '#lib/prover/node/worker.ts'
import { createDisclosureProver, type DisclosureProver } from '../prover.ts'
import { DISCLOSURE_FILES } from './files.ts'

interface DisclosureProverOptions {
  /**
   * Folder of the ceremony's reference string, by default ~/.bb-crs. If the string is missing, it is downloaded there.
   */
  referenceString?: string | undefined
  threads?: number | undefined
}

/**
 * The prover for disclosures on a network. The network alone selects the reference string.
 * @throws ProverError for a string that is missing, damaged, or the wrong one
 */
export async function openDisclosureProver(
  passphrase: string,
  { referenceString, threads = Math.min(availableParallelism(), 8) }: DisclosureProverOptions,
  say: (line: string) => void,
): Promise<DisclosureProver & { destroy(): Promise<void> }> {
  const keySet = keySetOf(passphrase)
  const folder = keySet === 'embedded' ? EMBEDDED_STRING : (referenceString ?? `${homedir()}/.bb-crs`)
  if (keySet === 'ignition' && !(await isComplete(folder))) {
    say(`The reference string is fetched into ${folder}, 2 MB.`)
    await fetchReferenceString(folder)
  }
  const read = () => readKnownString(folder, KEY_SET_DIGESTS[keySet], ORIGINS[keySet])
  await read()
  const backend = openBackend({ referenceString: read, threads, limitMs: 120_000, watchWorker })
  return { ...createDisclosureProver({ files: DISCLOSURE_FILES, backend, keySet }), destroy: backend.destroy }
}

const ORIGINS: Record<KeySetName, string> = {
  ignition: 'of the ceremony that real networks use',
  embedded: 'that of the embedded ledger',
}
