import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, concatBytes } from '@noble/hashes/utils.js'
import type { ReferenceString } from './backend.ts'
import { ProverError } from './prover-error.ts'
import { IGNITION } from './string-digests.ts'

/** One more than the gates of the largest circuit, a disclosure's. The token's circuits need half as many. */
export const POINTS = 32_769

/** The sizes of the two parts of a reference string. */
export const G1_BYTES = POINTS * 64
export const G2_BYTES = 128

const SOURCE = 'https://crs.aztec.network'
const TRIES = 3
const LIMIT_MS = 60_000

/** Downloads the string of the ceremony, 2 MB, and checks its digests. @throws ProverError */
export async function fetchIgnition(source = SOURCE): Promise<ReferenceString> {
  const [g1, g2] = await Promise.all([fetchPart('g1', source), fetchPart('g2', source)]).catch((cause: unknown) => {
    throw new ProverError('files-invalid', `the reference string could not be fetched: ${describe(cause)}`, { cause })
  })
  for (const [name, content] of [['g1', g1] as const, ['g2', g2] as const]) {
    if (bytesToHex(sha256(content)) === IGNITION[name]) continue
    throw new ProverError('files-invalid', `${source}/${name}.dat is not of the ceremony that real networks use`)
  }
  return { g1, g2 }
}

const describe = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/**
 * Downloads only the beginning of one part: the whole first part is several gigabytes. Rejects with the errors of fetch.
 */
export function fetchPart(name: 'g1' | 'g2', source = SOURCE): Promise<Uint8Array> {
  return download(`${source}/${name}.dat`, name === 'g1' ? G1_BYTES : G2_BYTES)
}

/** The first `bytes` of the response, counted, since a chunked response has no Content-Length. */
async function download(url: string, bytes: number): Promise<Uint8Array> {
  const headers = { Range: `bytes=0-${bytes - 1}`, 'Accept-Encoding': 'identity' }
  for (let attempt = 1; ; attempt += 1) {
    try {
      const response = await fetch(url, { headers, signal: AbortSignal.timeout(LIMIT_MS) })
      const content = await readStart(response, bytes)
      if (response.ok && content.length === bytes) return content
      throw new Error(`${url} responded ${response.status} with ${content.length} bytes in place of ${bytes}`)
    } catch (error) {
      if (attempt === TRIES) throw error
    }
  }
}

/** Stops after `bytes`: a server without support for ranges sends the whole file. */
async function readStart({ body }: Response, bytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body ?? []) {
    chunks.push(chunk)
    length += chunk.length
    if (length >= bytes) break
  }
  return concatBytes(...chunks).subarray(0, bytes)
}
