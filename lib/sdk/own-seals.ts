import { hkdf } from '@noble/hashes/hkdf.js'
import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import type { AnyHolder } from '#lib/wallet/keys.ts'
import { hashSeal } from '#lib/wallet/manifest.ts'

/** The payee, channel and amount that a seal must have. */
export interface SealedPayment {
  batch: string
  contractor: string
  channel: string
  /** base units */
  amount: bigint
}

/**
 * The seals that this employer has made: only those are signed, because anyone else's may hide another amount. Each has
 * a line with a keyed hash over the seal and its contents, but without the amount. The key is the holder's.
 */
export interface OwnSeals {
  /** Records a seal. Call it before the seal is sent. */
  add(payment: SealedPayment, encryptedAmount: string): void
  recognizes(payment: SealedPayment, encryptedAmount: string): boolean
  /** every channel for which a seal of the batch was ever made */
  channelsOf(batch: string): string[]
}

/** Keeps lines of text: a file, or an entry of `localStorage`. Amounts whose lines are lost are sealed again. */
export interface SealStore {
  read(): readonly string[]
  /** Returns once the line survives an interruption of this program. */
  append(line: string): void
}

/** The seals whose lines a store keeps. */
export function openSeals({ keys }: Pick<AnyHolder, 'keys'>, store: SealStore): OwnSeals {
  const key = hkdf(sha256, utf8ToBytes(keys.vk.toString(16)), undefined, utf8ToBytes('sealed amounts of runs'), 32)
  const lines = new Set(store.read())
  const lineOf = ({ batch, contractor, channel, amount }: SealedPayment, encryptedAmount: string) => {
    const parts = [batch, contractor, channel, amount, hashSeal(encryptedAmount)]
    return `${batch} ${channel} ${bytesToHex(hmac(sha256, key, utf8ToBytes(parts.join(' '))))}`
  }
  return {
    add: (payment, encryptedAmount) => {
      const line = lineOf(payment, encryptedAmount)
      store.append(line)
      lines.add(line)
    },
    recognizes: (payment, encryptedAmount) => lines.has(lineOf(payment, encryptedAmount)),
    channelsOf: (batch) => {
      const channels = [...lines].flatMap((line) => (line.startsWith(`${batch} `) ? [line.split(' ')[1] ?? ''] : []))
      return [...new Set(channels)]
    },
  }
}
