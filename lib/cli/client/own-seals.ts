import { createHmac } from 'node:crypto'
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import { deriveKey } from '#lib/auth/shared-secret.ts'
import type { Holder } from '#lib/wallet/keys.ts'
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
 * The seals that this employer has made: only those are signed, because anyone else's may hide another amount. The file
 * has a keyed hash for each, over the seal and what it must hide, but no amount. The key is the holder's.
 */
export interface OwnSeals {
  /** Records a seal. Call it before the seal is sent. */
  add(payment: SealedPayment, encryptedAmount: string): void
  recognizes(payment: SealedPayment, encryptedAmount: string): boolean
  /** the channels that seals of a batch were ever made for */
  channelsOf(batch: string): string[]
}

/** Opens the file at `path`, which only its owner can read. It is created with the first seal. */
export function openSeals(path: string, { keys }: Pick<Holder, 'keys'>): OwnSeals {
  const key = deriveKey(keys.vk.toString(16), 'sealed amounts of runs')
  const lines = new Set(readLines(path))
  const lineOf = ({ batch, contractor, channel, amount }: SealedPayment, encryptedAmount: string) => {
    const parts = [batch, contractor, channel, amount, hashSeal(encryptedAmount)]
    return `${batch} ${channel} ${createHmac('sha256', key).update(parts.join(' ')).digest('hex')}`
  }
  return {
    add: (payment, encryptedAmount) => {
      const line = lineOf(payment, encryptedAmount)
      append(path, line)
      lines.add(line)
    },
    recognizes: (payment, encryptedAmount) => lines.has(lineOf(payment, encryptedAmount)),
    channelsOf: (batch) => {
      const channels = [...lines].flatMap((line) => (line.startsWith(`${batch} `) ? [line.split(' ')[1] ?? ''] : []))
      return [...new Set(channels)]
    },
  }
}

function readLines(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').filter(Boolean)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

/** A line that a crash has cut recognizes no seal. The line after it begins with a line feed of its own. */
function append(path: string, line: string): void {
  const file = openSync(path, 'a', 0o600)
  try {
    writeSync(file, `\n${line}\n`)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
