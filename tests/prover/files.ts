import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { onTestFinished } from 'vitest'

export const CIRCUITS = 'lib/prover/circuits'
export const STRING = 'lib/prover/reference-string'

/** A temporary copy of these files. */
export async function copyOf(folder: string): Promise<string> {
  const copy = await mkdtemp(path.join(tmpdir(), 'prover-'))
  onTestFinished(() => rm(copy, { recursive: true }))
  await cp(folder, copy, { recursive: true, filter: (source) => !source.includes('source/') })
  return copy
}

export async function edit(file: string, change: (bytes: Buffer) => Uint8Array | string): Promise<void> {
  await writeFile(file, change(await readFile(file)))
}

/** The same bytes but for one bit. */
export const flip = (bytes: Uint8Array, at: number): Uint8Array =>
  bytes.map((byte, index) => (index === at ? byte ^ 1 : byte))
