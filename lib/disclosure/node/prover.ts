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
 * The set of keys for a network: that of the configured reference string, or else the network's default. A passphrase does not tell
 * which keys a verifier has.
 * @param folder of the reference string (PROVER_CRS)
 */
export async function chooseKeySet(passphrase: string, folder: string | undefined): Promise<KeySetName> {
  if (folder === undefined) return keySetOf(passphrase)
  const isEmbedded = await readKnownString(folder, KEY_SET_DIGESTS.embedded, ORIGINS.embedded).then(
    () => true,
    () => false,
  )
  return isEmbedded ? 'embedded' : 'ignition'
}

/**
 * The prover for disclosures on a network.
 * @throws ProverError for a string that is missing, damaged, or the wrong one
 */
export async function openDisclosureProver(
  passphrase: string,
  { referenceString, threads = Math.min(availableParallelism(), 8) }: DisclosureProverOptions,
  say: (line: string) => void,
): Promise<DisclosureProver & { destroy(): Promise<void> }> {
  const keySet = await chooseKeySet(passphrase, referenceString)
  const folder = referenceString ?? (keySet === 'embedded' ? EMBEDDED_STRING : `${homedir()}/.bb-crs`)
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
