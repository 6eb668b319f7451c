import { createHash } from 'node:crypto'
import { Keypair, StrKey } from '@stellar/stellar-sdk'
import { encodePoint, H, multiply } from '#lib/wallet/grumpkin.ts'
import { openHolder, type RandomSource } from '#lib/wallet/keys.ts'

export const TOKEN = StrKey.encodeContract(new Uint8Array(32).fill(7))

export const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
export const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'hex'))

/** Bytes that a test can repeat: SHA-256 of the seed and a counter. */
export function seeded(seed: string): RandomSource {
  let counter = 0
  return (size) => {
    const blocks: Buffer[] = []
    while (Buffer.concat(blocks).length < size) {
      blocks.push(createHash('sha256').update(`${seed}:${counter}`).digest())
      counter += 1
    }
    return new Uint8Array(Buffer.concat(blocks).subarray(0, size))
  }
}

export const keypair = (seed: string): Keypair => Keypair.fromRawEd25519Seed(seeded(seed)(32))
export const holder = (seed: string, token = TOKEN) => openHolder(keypair(seed), token)

/** An auditor: any scalar is a secret. */
export function auditor(seed: string): { secret: bigint; key: Uint8Array } {
  const secret = BigInt(`0x${hex(seeded(seed)(31))}`)
  return { secret, key: encodePoint(multiply(H, secret)) }
}
