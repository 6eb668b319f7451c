import { hkdf } from '@noble/hashes/hkdf.js'
import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import type { AnyHolder } from '#lib/wallet/keys.ts'
import { hashSeal } from '#lib/wallet/manifest.ts'
import { RunError } from './run-error.ts'

/** The payee, channel and amount that a seal must have. */
export interface SealContents {
  batch: string
  contractor: string
  channel: string
  /** base units */
  amount: bigint
}

/** A payout as this employer first saw it. */
export interface PayoutNote {
  batch: string
  /** the payee, G… or C…: the list has it, and not the service */
  address: string
  payout: string
  /** when that was, ISO 8601, by the clock of this device */
  at: string
}

/** A delegation that a run of this employer was signed over. */
export interface DelegationNote {
  batch: string
  channel: string
  liveUntilLedger: number
}

/** A seal and what it contains. */
export interface SealNote {
  payment: SealContents
  encryptedAmount: string
}

/**
 * What an employer's client remembers of its runs: an attacker who holds the service's database can change what the API says. No
 * line contains an amount; that of a seal has a hash over the seal and its contents, keyed by the holder.
 */
export interface OwnNotes {
  /** Records seals. Call it before the seals are sent. */
  addSeals(seals: readonly SealNote[]): void
  /** Whether a seal is the employer's own, for this payment: only those are signed, because others may hide another amount. */
  recognizes(payment: SealContents, encryptedAmount: string): boolean
  /** The address of a payee by the id or email in the employer's list: the one that was added last. */
  addressOf(named: string): string | undefined
  addPayee(named: string, address: string): void
  payouts(): PayoutNote[]
  addPayouts(payouts: readonly PayoutNote[]): void
  /** The payouts that the ledger has shown as paid, with the hashes of their transactions. They stay paid. */
  paid(): Map<string, string>
  addPaid(transactions: ReadonlyMap<string, string>): void
  /** In the order in which they were noted: a run may use a delegation that an earlier batch has left. */
  delegations(): DelegationNote[]
  addDelegation(delegation: DelegationNote): void
  /** The payments that were not for a payout, by the hashes of their transactions. */
  explained(): string[]
  addExplained(transactions: readonly string[]): void
}

/** Keeps lines of text: a file, or an entry of `localStorage`. Several programs may append to it at once. */
export interface NoteStore {
  /** All lines, in order. They are parsed once if this returns the same array until lines are added. */
  read(): readonly string[]
  /** Returns once the lines survive an interruption of this program. */
  append(lines: readonly string[]): void
}

/** The part of a browser's storage that is used. */
interface NoteStorage {
  readonly length: number
  key(index: number): string | null
  getItem(key: string): string | null
  setItem(key: string, value: string): void
}

/**
 * Keeps the lines in a browser's storage: `storedNotes(localStorage)`. Each addition has a separate entry, because a tab learns of
 * another's a moment later, and would overwrite it.
 */
export function storedNotes(storage: NoteStorage, name = 'confidential-payroll'): NoteStore {
  let present = ''
  let lines: readonly string[] = []
  let added = 0
  return {
    read: () => {
      const keys = Array.from({ length: storage.length }, (_, index) => storage.key(index) ?? '')
      const own = keys.filter((key) => key.startsWith(`${name} `)).toSorted()
      if (own.join() === present) return lines
      present = own.join()
      lines = own.flatMap((key) => storage.getItem(key)?.split('\n') ?? [])
      return lines
    },
    append: (more) => {
      added += 1
      const order = `${new Date().toISOString()} ${String(added).padStart(9, '0')}`
      storage.setItem(`${name} ${order} ${crypto.randomUUID()}`, more.join('\n'))
    },
  }
}

/** A line is the account, a word, fields without white space, and END: a line that a crash has cut short is ignored. */
const END = ';'
const FIELDS = { seal: 1, payee: 2, payout: 4, paid: 2, delegation: 3, explained: 1 }
type Word = keyof typeof FIELDS
type Fields = readonly (string | number)[]

const isWord = (word: string): word is Word => Object.hasOwn(FIELDS, word)

/** The notes of an account whose lines a store keeps. */
export function openNotes({ address, keys }: Pick<AnyHolder, 'address' | 'keys'>, store: NoteStore): OwnNotes {
  const key = hkdf(sha256, utf8ToBytes(keys.vk.toString(16)), undefined, utf8ToBytes('sealed amounts of runs'), 32)
  const sealOf = ({ batch, contractor, channel, amount }: SealContents, encryptedAmount: string) =>
    bytesToHex(
      hmac(sha256, key, utf8ToBytes([batch, contractor, channel, amount, hashSeal(encryptedAmount)].join(' '))),
    )
  let parsed:
    | { lines: readonly string[]; count: number; notes: Map<Word, string[][]>; present: Set<string> }
    | undefined
  const parse = () => {
    const lines = store.read()
    // Lines are only ever added, also to an array that the store keeps.
    if (parsed?.lines === lines && parsed.count === lines.length) return parsed
    const notes = new Map<Word, string[][]>()
    for (const line of lines) {
      const [account, word = '', ...fields] = line.split(' ')
      if (account !== address || fields.pop() !== END || !isWord(word) || fields.length !== FIELDS[word]) continue
      const others = notes.get(word)
      if (others) others.push(fields)
      else notes.set(word, [fields])
    }
    parsed = { lines, count: lines.length, notes, present: new Set(lines) }
    return parsed
  }
  const read = (word: Word) => parse().notes.get(word) ?? []
  const lineOf = (word: Word, fields: Fields) => [address, word, ...fields, END].join(' ')
  const add = (word: Word, notes: readonly Fields[], { repeats = false } = {}) => {
    // Ids and addresses come from the service: one with a line feed could write any note.
    const isClean = notes.flat().every((field) => /^[\w@.:%+!~*'()-]+$/.test(String(field)))
    if (!isClean)
      throw new RunError(
        'list-differs',
        'the service returned an id or an address with characters that are not allowed',
      )
    const { present } = parse()
    const lines = notes.map((fields) => lineOf(word, fields)).filter((line) => repeats || !present.has(line))
    if (lines.length > 0) store.append(lines)
  }
  // An email may contain white space, and letters in either case.
  const nameOf = (named: string) => encodeURIComponent(named.toLowerCase())

  const addressOf = (named: string) => read('payee').findLast(([name]) => name === nameOf(named))?.[1]

  return {
    addSeals: (seals) =>
      add(
        'seal',
        seals.map(({ payment, encryptedAmount }) => [sealOf(payment, encryptedAmount)]),
      ),
    recognizes: (payment, encryptedAmount) => parse().present.has(lineOf('seal', [sealOf(payment, encryptedAmount)])),
    addressOf,
    addPayee: (named, payee) => {
      // The last one counts: an earlier address may be confirmed again.
      if (addressOf(named) !== payee) add('payee', [[nameOf(named), payee]], { repeats: true })
    },
    payouts: () =>
      read('payout').map(([batch = '', payee = '', payout = '', at = '']) => ({ batch, address: payee, payout, at })),
    addPayouts: (payouts) =>
      add(
        'payout',
        payouts.map(({ batch, address: payee, payout, at }) => [batch, payee, payout, at]),
      ),
    paid: () => new Map(read('paid').map(([payout = '', transaction = '']) => [payout, transaction])),
    addPaid: (transactions) => add('paid', [...transactions]),
    delegations: () =>
      read('delegation').map(([batch = '', channel = '', ledger]) => ({
        batch,
        channel,
        liveUntilLedger: Number(ledger),
      })),
    addDelegation: ({ batch, channel, liveUntilLedger }) => add('delegation', [[batch, channel, liveUntilLedger]]),
    explained: () => read('explained').map(([transaction = '']) => transaction),
    addExplained: (transactions) =>
      add(
        'explained',
        transactions.map((transaction) => [transaction]),
      ),
  }
}
