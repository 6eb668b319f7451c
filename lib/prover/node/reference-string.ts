import { createHash, randomUUID } from 'node:crypto'
import { mkdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import type { ReferenceString } from '../backend.ts'
import { fetchPart, G1_BYTES, G2_BYTES } from '../ignition.ts'
import { ProverError } from '../prover-error.ts'
import type { Digests } from '../string-digests.ts'
import { readFileOrExplain } from './circuit-folder.ts'

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

/**
 * Downloads the string of the ceremony into a folder. bb.js could do this, but a broken connection then ends the
 * process and leaves a truncated file, which later passes for a complete one. This function gives a file its final name
 * only once it is complete.
 * @throws ProverError
 */
export async function fetchReferenceString(folder: string, source?: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  for (const name of ['g1', 'g2'] as const) {
    const content = await fetchPart(name, source).catch((cause: unknown) => {
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
