import type { ReferenceString } from '#lib/prover/backend.ts'
import { ProverError } from '#lib/prover/prover-error.ts'
import { decodeBase64 } from '#lib/text/base64.ts'
import { loadReferenceString } from './assets.js'

/** The embedded ledger's reference string, whose secret is public. */
export async function loadEmbeddedString(): Promise<ReferenceString> {
  const { g1, g2 } = await loadReferenceString()
  return { g1: decodeAsset(g1), g2: decodeAsset(g2) }
}

/** The bytes of an asset in base64. */
export function decodeAsset(text: string): Uint8Array {
  const bytes = decodeBase64(text)
  if (!bytes) throw new ProverError('files-invalid', 'the package is damaged')
  return bytes
}

/**
 * One thread per processor, at most eight. Without cross-origin isolation a page cannot share memory, so it gets one.
 */
export function defaultThreads(): number {
  const canShareMemory = globalThis.crossOriginIsolated ?? true
  return canShareMemory ? Math.min(globalThis.navigator?.hardwareConcurrency ?? 1, 8) : 1
}
