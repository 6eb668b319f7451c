import { readFileOrExplain } from '#lib/prover/node/circuit-folder.ts'
import { EMBEDDED_CIRCUITS } from '#lib/prover/node/embedded.ts'
import type { DisclosureFiles } from '../prover.ts'

const FOLDER = `${EMBEDDED_CIRCUITS}/disclosure`

/** The committed circuits and keys, relative to the project's folder, in which every program runs. */
export const DISCLOSURE_FILES: DisclosureFiles = {
  readCircuit: (name) => readFileOrExplain(`${FOLDER}/${name}.json`),
  readKeySet: async (name) => (await readFileOrExplain(`${FOLDER}/${name}.keys.json`)).content,
}
