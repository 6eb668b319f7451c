import { createHash } from 'node:crypto'
import type { History } from '../state/history.ts'
import type { LedgerContext } from '../state/ledger-context.ts'
import { openPast, type Past, type State, type StoredEntry } from '../state/state.ts'
import { openStore } from '../state/store.ts'
import { type Envelope, readEnvelope } from '../transaction/envelope.ts'
import type { LedgerLimits } from '../transaction/ledger-room.ts'
import type { Moment } from '../transaction/preconditions.ts'
import { openQueue, type Verdict } from '../transaction/queue.ts'
import { NO_TRANSACTIONS, type TransactionSet } from '../transaction/transaction-set.ts'
import { applyLedger, orderOf } from './close.ts'
import { configSettings, upgrade } from './config-settings.ts'
import { type Draft, draftWaiting, type Tip, writeDraft } from './draft.ts'
import { type Protocol, readHeader } from './header.ts'

/** The network as one node sees it. */
export interface Ledger {
  readonly passphrase: string
  /** The entries as of the last closed ledger, to read or to fork for a simulation. */
  readonly state: State
  readonly history: History
  readonly past: Past
  /** The last closed ledger. */
  context(): LedgerContext
  /** unix seconds */
  now(): number
  /** The ledger that an envelope arriving after `last` is checked against. It may be some seconds before it closes. */
  momentAfter(last: Pick<LedgerContext, 'sequence' | 'closeTime'>): Moment
  /** @throws UnreadableEnvelope if `envelope` (base64 XDR) is not one */
  read(envelope: string): Envelope
  /** @throws UnreadableEnvelope */
  submit(envelope: string): { envelope: Envelope; verdict: Verdict }
  /** Closes a ledger with the pending transactions that fit, and returns them. */
  close(): Envelope[]
  /** Settles when the next ledger has closed. */
  closed(): Promise<void>
  stop(): void
}

interface LedgerOptions {
  /** null keeps everything in memory */
  readonly directory: string | null
  readonly passphrase: string
  /** 28 by default */
  readonly protocol?: Protocol | undefined
  /** the limits of a ledger */
  readonly limits: LedgerLimits
  /** milliseconds between ledgers, for the network's settings */
  readonly closeMs: number
  /** how many ledgers clients can query */
  readonly historyLedgers: number
  /** how many ledgers of changes are kept in memory: the maximum lag of a node */
  readonly memory: number
  readonly verify: LedgerContext['verify']
  /** unix milliseconds */
  readonly now: () => number
  /** The entries of ledger 1, for a directory without a network. */
  readonly genesis: (ledger: LedgerContext) => StoredEntry[]
}

/** Seconds from now for which a transaction must stay valid: two closes of 5 s (core's upper bound offset). */
const CLOSE_TIME_SLACK = 10

export function openLedger(options: LedgerOptions): Ledger {
  const { directory, passphrase, protocol = 28, limits, verify, now } = options
  const networkId = createHash('sha256').update(passphrase).digest()
  const store = openStore(directory, options.historyLedgers)
  const { state, history, expiry } = store
  const queue = openQueue(limits)
  const past = openPast(state, options.memory)
  const settings = configSettings(options)
  const seconds = () => Math.floor(now() / 1000)
  let waiting = Promise.withResolvers<void>()
  let tip: Tip = { hash: new Uint8Array(32), feePool: 0n, sequence: 0, closeTime: 0, sorobanBytes: 0 }

  const contextOf = (at: { sequence: number; closeTime: number }): LedgerContext => {
    return { sequence: at.sequence, closeTime: at.closeTime, networkId, passphrase, protocol, verify }
  }
  const momentAfter: Ledger['momentAfter'] = ({ sequence, closeTime }) => {
    return { sequence: sequence + 1, closeTime, latest: Math.max(0, seconds() - closeTime) + CLOSE_TIME_SLACK }
  }
  const draft = (ledger: LedgerContext, set: TransactionSet): Draft => {
    const layer = state.fork()
    expiry.evict(layer, ledger.sequence)
    upgrade(layer, settings, ledger.sequence)
    return writeDraft({ ledger, tip, layer, set, outcome: applyLedger(set, layer, ledger) })
  }
  const keep = ({ layer, closed, tip: next }: Draft) => {
    const changes = layer.changes()
    store.append(closed, layer)
    if (tip.sequence > 0) past.note(changes)
    tip = next
  }

  if (state.entries().next().done) {
    const ledger = contextOf({ sequence: 1, closeTime: seconds() })
    const layer = state.fork()
    for (const entry of options.genesis(ledger)) layer.put(entry)
    upgrade(layer, settings, ledger.sequence)
    const outcome = { transactions: [], fees: 0n }
    keep(writeDraft({ ledger, tip, layer, set: NO_TRANSACTIONS, outcome }))
  } else {
    const { hash, header, sequence, closeTime, sorobanBytes } = history.latest()
    const { feePool } = readHeader(header)
    tip = { hash: Buffer.from(hash, 'hex'), feePool, sequence, closeTime, sorobanBytes }
  }

  return {
    passphrase,
    state,
    history,
    past,
    now: seconds,
    context: () => contextOf(tip),
    momentAfter,
    read: (text) => readEnvelope(text, networkId),
    submit(text) {
      const envelope = readEnvelope(text, networkId)
      return { envelope, verdict: queue.add(envelope, state, momentAfter(tip)) }
    },
    close() {
      const ledger = contextOf({ sequence: tip.sequence + 1, closeTime: Math.max(tip.closeTime, seconds()) })
      const closed = draftWaiting({
        take: (without) => queue.take(state, { ...ledger, latest: 0 }, without),
        draft: (set) => draft(ledger, set),
        drop: queue.drop,
      })
      keep(closed)
      const applied = orderOf(closed.set)
      queue.shift(applied)
      const { resolve } = waiting
      waiting = Promise.withResolvers()
      resolve()
      return applied
    },
    closed: () => waiting.promise,
    stop: store.close,
  }
}
