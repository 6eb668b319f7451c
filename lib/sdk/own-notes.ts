import { hkdf } from '@noble/hashes/hkdf.js'
import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import type { AnyHolder } from '#lib/wallet/keys.ts'
import { hashSeal } from '#lib/wallet/manifest.ts'
import { RunError } from './run-error.ts'

/** The payee, channel and amount that a seal must have. */
export interface SealedPayment {
  batch: string
  contractor: string
  channel: string
  /** base units */
  amount: bigint
}

/** A payout as this employer first saw it. */
export interface NotedPayout {
  batch: string
  /** the payee, G… or C…: the list has it, and not the service */
  address: string
  payout: string
  /** when that was, ISO 8601, by the clock of this device */
  at: string
}

/** A delegation that a run of this employer was signed over. */
export interface NotedDelegation {
  batch: string
  channel: string
  liveUntilLedger: number
}

/**
 * What an employer's client remembers of its runs: an attacker who holds the service's database can change what the API says. No
 * line contains an amount; that of a seal has a hash over the seal and its contents, keyed by the holder.
 */
export interface OwnNotes {
  /** Records a seal. Call it before the seal is sent. */
  addSeal(payment: SealedPayment, encryptedAmount: string): void
  /** Whether a seal is the employer's own, for this payment: only those are signed, because others may hide another amount. */
  recognizes(payment: SealedPayment, encryptedAmount: string): boolean
  /** The address of a payee by the id or email in the employer's list: the one that was added last. */
  addressOf(named: string): string | undefined
  addPayee(named: string, address: string): void
  payouts(): NotedPayout[]
  addPayout(payout: NotedPayout): void
  /** The payouts that the ledger has shown as paid, with the hashes of their transactions. They stay paid. */
  paid(): Map<string, string>
  addPaid(payout: string, transaction: string): void
  delegations(): NotedDelegation[]
  addDelegation(delegation: NotedDelegation): void
  /** The payments that were not for a payout, by the hashes of their transactions. */
  explained(): string[]
  addExplained(transaction: string): void
}

/** Keeps lines of text: a file, or an entry of `localStorage`. Several programs may append to it at once. */
export interface NoteStore {
  read(): readonly string[]
  /** Returns once the line survives an interruption of this program. */
  append(line: string): void
}

/** A line is the account, a word, fields without white space, and END: a line that a crash has cut short is ignored. */
const END = ';'
const FIELDS = { seal: 1, payee: 2, payout: 4, paid: 2, delegation: 3, explained: 1 }

/** The notes of an account whose lines a store keeps. */
export function openNotes({ address, keys }: Pick<AnyHolder, 'address' | 'keys'>, store: NoteStore): OwnNotes {
  const key = hkdf(sha256, utf8ToBytes(keys.vk.toString(16)), undefined, utf8ToBytes('sealed amounts of runs'), 32)
  const sealOf = ({ batch, contractor, channel, amount }: SealedPayment, encryptedAmount: string) =>
    bytesToHex(
      hmac(sha256, key, utf8ToBytes([batch, contractor, channel, amount, hashSeal(encryptedAmount)].join(' '))),
    )
  const read = (word: keyof typeof FIELDS): string[][] =>
    store.read().flatMap((line) => {
      const [account, own, ...fields] = line.split(' ')
      const isWhole = fields.pop() === END && fields.length === FIELDS[word]
      return account === address && own === word && isWhole ? [fields] : []
    })
  const has = (word: keyof typeof FIELDS, field: string) => read(word).some(([first]) => first === field)
  const append = (word: keyof typeof FIELDS, ...fields: (string | number)[]) => {
    // Ids and addresses come from the service: one with a line feed could write any note.
    const isClean = fields.every((field) => /^[\w@.:%+!~*'()-]+$/.test(String(field)))
    if (!isClean)
      throw new RunError(
        'list-differs',
        'the service returned an id or an address with characters that are not allowed',
      )
    store.append([address, word, ...fields, END].join(' '))
  }
  const add = (word: keyof typeof FIELDS, ...fields: (string | number)[]) => {
    if (!read(word).some((known) => known.join(' ') === fields.join(' '))) append(word, ...fields)
  }
  // An email may contain white space, and letters in either case.
  const nameOf = (named: string) => encodeURIComponent(named.toLowerCase())

  const addressOf = (named: string) => read('payee').findLast(([name]) => name === nameOf(named))?.[1]

  return {
    addSeal: (payment, encryptedAmount) => add('seal', sealOf(payment, encryptedAmount)),
    recognizes: (payment, encryptedAmount) => has('seal', sealOf(payment, encryptedAmount)),
    addressOf,
    addPayee: (named, payee) => {
      // The last one counts: an earlier address may be confirmed again.
      if (addressOf(named) !== payee) append('payee', nameOf(named), payee)
    },
    payouts: () =>
      read('payout').map(([batch = '', payee = '', payout = '', at = '']) => ({ batch, address: payee, payout, at })),
    addPayout: ({ batch, address: payee, payout, at }) => add('payout', batch, payee, payout, at),
    paid: () => new Map(read('paid').map(([payout = '', transaction = '']) => [payout, transaction])),
    addPaid: (payout, transaction) => add('paid', payout, transaction),
    delegations: () =>
      read('delegation').map(([batch = '', channel = '', ledger]) => ({
        batch,
        channel,
        liveUntilLedger: Number(ledger),
      })),
    addDelegation: ({ batch, channel, liveUntilLedger }) => add('delegation', batch, channel, liveUntilLedger),
    explained: () => read('explained').map(([transaction = '']) => transaction),
    addExplained: (transaction) => add('explained', transaction),
  }
}
