import { createHash } from 'node:crypto'
import { Keypair } from '@stellar/stellar-sdk'

/** Pseudorandom numbers and names, derived from a text and an index, so that every run generates the same ones. */
export interface Source {
  /** a whole number from 0 to `below` - 1 */
  number(below: number): number
  /** 64 hex digits */
  hash(): string
  uuid(): string
  address(): string
}

export function openSource(text: string): Source {
  let drawn = 0
  const next = () => {
    drawn += 1
    return createHash('sha256').update(`${text} ${drawn}`).digest()
  }
  return {
    number: (below) => next().readUInt32BE(0) % below,
    hash: () => next().toString('hex'),
    uuid: () =>
      next()
        .toString('hex')
        .replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-4$3-8$4-$5'),
    address: () => Keypair.fromRawEd25519Seed(next()).publicKey(),
  }
}

/** The inputs of the seed. */
export interface Seeding {
  source: Source
  /** the account that pays the fees, G… */
  sponsor: string
  /** of the relay */
  channels: readonly string[]
  now: Date
  /** how many more contractors and small batches to create */
  more: number
}
