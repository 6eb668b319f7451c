import { createDisclosureProver, type DisclosureFiles, type DisclosureProver } from '#lib/disclosure/prover.ts'
import { openBackend } from '#lib/prover/backend.ts'
import { fetchIgnition } from '#lib/prover/ignition.ts'
import { type KeySetName, keySetOf } from '#lib/prover/key-set.ts'
import { loadDisclosureFile } from './assets.js'
import { defaultThreads, loadEmbeddedString } from './embedded-string.ts'

export type { DiscloserContext } from '#lib/disclosure/answer.ts'
export { discloseBalance } from '#lib/disclosure/balance-disclosure.ts'
export { type Bundle, encodeBundles, parseBundles } from '#lib/disclosure/bundle.ts'
export { DisclosureError, type DisclosureErrorCode } from '#lib/disclosure/disclosure-error.ts'
export { type DisclosureSource, openLedgerSource } from '#lib/disclosure/ledger-source.ts'
export { type Payment, paymentsIn } from '#lib/disclosure/payment.ts'
export { disclosePayments } from '#lib/disclosure/payment-disclosure.ts'
export {
  createRequest,
  type DisclosureRequest,
  drawRequesterKey,
  parseRequest,
  type Question,
} from '#lib/disclosure/request.ts'
export { type Verified, type VerifierContext, verifyDisclosure } from '#lib/disclosure/verify.ts'

/** The circuits and pinned keys of disclosures, each loaded when it is needed. */
export const disclosureFiles: DisclosureFiles = {
  readCircuit: async (name) => ({ name: `${name}.json`, content: await read(name) }),
  readKeySet: (name) => read(`${name}.keys`),
}

async function read(name: string): Promise<Uint8Array> {
  return new TextEncoder().encode((await loadDisclosureFile(name)).content)
}

/**
 * The prover for disclosures on a network. The reference string of the ceremony, 2 MB, is downloaded for the first proof.
 * @param options.keySet which reference string, by default `ignition`, except for the passphrase of an embedded ledger
 * @param options.threads by default one per processor, at most eight; in a page that is not cross-origin isolated one
 */
export function openDisclosureProver(
  passphrase: string,
  options: { threads?: number; keySet?: KeySetName } = {},
): DisclosureProver & { destroy(): Promise<void> } {
  const keySet = options.keySet ?? keySetOf(passphrase)
  const referenceString = keySet === 'embedded' ? loadEmbeddedString : () => fetchIgnition()
  const { threads = defaultThreads() } = options
  const backend = openBackend({ referenceString, threads, limitMs: 120_000 })
  return { ...createDisclosureProver({ files: disclosureFiles, backend, keySet }), destroy: backend.destroy }
}
