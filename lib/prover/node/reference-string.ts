import { createHash, randomUUID } from 'node:crypto'
import { mkdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import type { ReferenceString } from '../backend.ts'
import { ProverError } from '../prover-error.ts'
import type { Digests } from '../string-digests.ts'
import { readFileOrExplain } from './circuit-folder.ts'

/** One more than the gates of the largest circuit, a disclosure's. The token's circuits need half as many. */
export const POINTS = 32_769

const G1_BYTES = POINTS * 64
const G2_BYTES = 128

/**
 * Reads `bn254_g1.dat` and `bn254_g2.dat`, the files that bb.js keeps in ~/.bb-crs. A longer string works as well.
 * @throws ProverError for a file that is missing, too short, or something else
 */
export async function readReferenceString(folder: string): Promise<ReferenceString> {
  const first = `${folder}/bn254_g1.dat`
  const second = `${folder}/bn254_g2.dat`
  const { content: g1 } = await readFileOrExplain(first)
  const { content: g2 } = await readFileOrExplain(second)
  if (g1.length < G1_BYTES)
    throw new ProverError('files-invalid', `${first} has ${g1.length} bytes; ${G1_BYTES} are needed`)
  if (BigInt(`0x${g1.toString('hex', 0, 32)}`) !== 1n || BigInt(`0x${g1.toString('hex', 32, 64)}`) !== 2n) {
    throw new ProverError('files-invalid', `${first} does not begin with the generator of the curve`)
  }
  if (g2.length !== G2_BYTES)
    throw new ProverError('files-invalid', `${second} has ${g2.length} bytes in place of ${G2_BYTES}`)
  return { g1: g1.subarray(0, G1_BYTES), g2 }
}

/** Reads a string that must have these digests. `origin` describes that string in the error. @throws ProverError */
export async function readKnownString(folder: string, digests: Digests, origin: string): Promise<ReferenceString> {
  const string = await readReferenceString(folder)
  for (const part of ['g1', 'g2'] as const) {
    const digest = createHash('sha256').update(string[part]).digest('hex')
    if (digest !== digests[part])
      throw new ProverError('files-invalid', `bn254_${part}.dat in ${folder} is not ${origin}`)
  }
  return string
}

/** Whether both files exist in full length: a download may have been cut off. */
export async function isComplete(folder: string): Promise<boolean> {
  const sizeOf = async (name: string) => (await stat(`${folder}/${name}`).catch(() => undefined))?.size ?? 0
  return (await sizeOf('bn254_g1.dat')) >= G1_BYTES && (await sizeOf('bn254_g2.dat')) === G2_BYTES
}

const SOURCE = 'https://crs.aztec.network'
const TRIES = 3
const LIMIT_MS = 60_000

/**
 * Downloads the string of the ceremony into a folder. bb.js could do it, but there a broken connection ends the process
 * and leaves a truncated file, which later passes for a complete one. Here a file gets its name once it is complete.
 * @throws ProverError
 */
export async function fetchReferenceString(folder: string, source = SOURCE): Promise<void> {
  await mkdir(folder, { recursive: true })
  // The first file has gigabytes; only its beginning is needed.
  const parts = [
    { name: 'g1', bytes: G1_BYTES },
    { name: 'g2', bytes: G2_BYTES },
  ]
  for (const { name, bytes } of parts) {
    const content = await download(`${source}/${name}.dat`, bytes).catch((cause: unknown) => {
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw new ProverError('files-invalid', `the reference string could not be fetched into ${folder}: ${reason}`, {
        cause,
      })
    })
    const file = `${folder}/bn254_${name}.dat`
    // Two relays that start together both download it. With a shared name the second rename would find no file.
    const part = `${file}.${randomUUID()}.part`
    try {
      await writeFile(part, content)
      await rename(part, file)
    } finally {
      await rm(part, { force: true })
    }
  }
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
  return Buffer.concat(chunks).subarray(0, bytes)
}
