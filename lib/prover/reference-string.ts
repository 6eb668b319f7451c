import { createHash } from 'node:crypto'
import { ProverFault, readOrExplain } from './circuits.ts'

/** One more than the gates of the largest circuit. */
export const POINTS = 32_769

const POINT_BYTES = 64
const G2_BYTES = 128

/** The common reference string: powers of a secret number, as points. Proofs and keys hold under one string only. */
export interface ReferenceString {
  /** 32,769 points of G1, 64 bytes each. */
  g1: Uint8Array
  /** One point of G2, 128 bytes. */
  g2: Uint8Array
}

/** SHA-256 of the string that real networks use: that of Aztec's ceremony, in which 176 parties took part. */
const IGNITION = {
  g1: 'd769ac6c98f8fab858a7e9967f2b7f181d8ad9fdcdf55438c915696febf0e99c',
  g2: '01797bfc4de5a96f0e516a9ea4537d18786dc30cb991aca4274c95822b69c32f',
}

/**
 * Reads `bn254_g1.dat` and `bn254_g2.dat`, the files that bb.js keeps in ~/.bb-crs. A longer string serves as well.
 * @throws ProverFault for a file that is missing, too short, or something else
 */
export async function readReferenceString(folder: string): Promise<ReferenceString> {
  const first = `${folder}/bn254_g1.dat`
  const second = `${folder}/bn254_g2.dat`
  const [g1, g2] = await Promise.all([readOrExplain(first), readOrExplain(second)])
  if (g1.length < POINTS * POINT_BYTES) {
    throw new ProverFault(`${first} has ${g1.length} bytes; ${POINTS * POINT_BYTES} are needed`)
  }
  if (BigInt(`0x${g1.toString('hex', 0, 32)}`) !== 1n || BigInt(`0x${g1.toString('hex', 32, 64)}`) !== 2n) {
    throw new ProverFault(`${first} does not begin with the generator of the curve`)
  }
  if (g2.length !== G2_BYTES) throw new ProverFault(`${second} has ${g2.length} bytes in place of ${G2_BYTES}`)
  return { g1: g1.subarray(0, POINTS * POINT_BYTES), g2 }
}

/** @throws ProverFault unless the string is that of the ceremony which real networks trust */
export function checkIgnition(string: ReferenceString, folder: string): void {
  for (const part of ['g1', 'g2'] as const) {
    const digest = createHash('sha256').update(string[part]).digest('hex')
    if (digest !== IGNITION[part]) {
      throw new ProverFault(`bn254_${part}.dat in ${folder} is not of the ceremony that real networks use`)
    }
  }
}

/** Downloads the string into a folder, where it is missing; needs the network. @throws ProverFault */
export async function fetchReferenceString(folder: string): Promise<void> {
  const { Crs } = await import(/* webpackIgnore: true */ /* turbopackIgnore: true */ '@aztec/bb.js')
  try {
    await Crs.new(POINTS, folder)
  } catch (cause) {
    throw new ProverFault(`the reference string could not be fetched into ${folder}`, { cause })
  }
}
