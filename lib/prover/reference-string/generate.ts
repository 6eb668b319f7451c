import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { bn254 } from '@noble/curves/bn254.js'
import { POINTS } from '../ignition.ts'

/**
 * The reference string of the embedded ledger: tau^i · G1 for i from 0 to 32,768, and tau · G2. Anyone can derive this
 * tau and prove false statements with it. The string protects against mistakes and tampering, not against an attacker,
 * and is only for a ledger without real funds.
 */
const PHRASE = 'confidential payroll: reference string of the embedded ledger'

const { Fr, Fp } = bn254.fields
const G1 = bn254.G1.Point

/** The two files of the string, in the format of bb.js: coordinates of 32 bytes, big-endian. */
export function generateReferenceString(points = POINTS): { g1: Uint8Array; g2: Uint8Array } {
  const tau = Fr.create(BigInt(`0x${createHash('sha512').update(PHRASE).digest('hex')}`))
  G1.BASE.precompute(8)
  const powers = [1n]
  while (powers.length < points) powers.push(Fr.mul(powers.at(-1) ?? 1n, tau))
  const g1 = powers.flatMap((power) => {
    const { x, y } = G1.BASE.multiplyUnsafe(power).toAffine()
    return [x, y]
  })
  const { x, y } = bn254.G2.Point.BASE.multiply(tau).toAffine()
  return { g1: encode(g1), g2: encode([x.c0, x.c1, y.c0, y.c1]) }
}

const encode = (coordinates: bigint[]): Uint8Array => Buffer.concat(coordinates.map((value) => Fp.toBytes(value)))

const USAGE = `node lib/prover/reference-string/generate.ts

Writes the reference string of the embedded ledger anew, byte for byte: bn254_g1.dat and bn254_g2.dat beside this file.`

if (import.meta.main) {
  const { values } = parseArgs({ options: { help: { type: 'boolean' } } })
  if (values.help) console.log(USAGE)
  else await writeReferenceString()
}

async function writeReferenceString(): Promise<void> {
  const { g1, g2 } = generateReferenceString()
  await writeFile(fileURLToPath(new URL('bn254_g1.dat', import.meta.url)), g1)
  await writeFile(fileURLToPath(new URL('bn254_g2.dat', import.meta.url)), g2)
}
