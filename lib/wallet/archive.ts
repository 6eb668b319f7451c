import { z } from 'zod'
import { ledgerOf } from '#lib/stellar/events.ts'
import { WalletError } from './wallet-error.ts'

/** An event of the token as an archive keeps it. XDR is base64. */
export interface ArchivedEvent {
  /** the RPC's id: ids sort in the order of the ledger */
  id: string
  contract_id: string
  ledger_seq: number
  /** ISO 8601 */
  ledger_close_time: string
  tx_hash: string
  /** its index among all contract events of the operation */
  event_index: number
  topics_xdr: string[]
  data_xdr: string
  /** the payload of a call that made or used a delegation */
  payload_xdr?: string | undefined
}

/** Where the wallet finds the events that the RPC no longer has. */
export interface EventArchive {
  /** for messages: a URL, or another name */
  name: string
  /**
   * The ledger at which the replay of an account's balance as of `atLedger` begins: that of its anchor. Undefined if the
   * archive holds neither a checkpoint nor the registration.
   * @throws WalletError `archive-unavailable`
   */
  findStart(account: string, atLedger: number): Promise<number | undefined>
  /**
   * The events of an account from one ledger to another, both included. `complete`: none of them is missing. Without a
   * first ledger they begin with the archive.
   * @throws WalletError `archive-unavailable`
   */
  readEvents(account: string, fromLedger: number | undefined, toLedger: number): Promise<ArchivedEvents>
}

/** An archive that also serves verifiers and auditors: with the token's events of every account. */
export interface TokenArchive extends EventArchive {
  /** The token's events of one transaction. `complete`: it has its ledger. @throws WalletError `archive-unavailable` */
  readTransaction(hash: string): Promise<ArchivedEvents>
  /** Every event of the token, from one ledger to another. @throws WalletError `archive-unavailable` */
  readToken(fromLedger: number | undefined, toLedger: number): Promise<ArchivedEvents>
  /** The events of a registry that the token has named. @throws WalletError `archive-unavailable` */
  readRegistry(registry: string, fromLedger: number | undefined, toLedger: number): Promise<ArchivedEvents>
}

/** `complete`: none of the requested events is missing. */
export interface ArchivedEvents {
  events: ArchivedEvent[]
  complete: boolean
}

const EVENT = z.object({
  id: z.string().regex(/^\d{19}-\d{10}$/),
  contract_id: z.string(),
  ledger_seq: z.int(),
  ledger_close_time: z.iso.datetime(),
  tx_hash: z.string(),
  event_index: z.int(),
  topics_xdr: z.array(z.string()),
  data_xdr: z.string(),
  payload_xdr: z.string().optional(),
})
const PAGE = z.object({ events: z.array(EVENT), cursor: z.string().nullable(), complete: z.boolean() })
const CHECKPOINT = z.object({ event: EVENT.nullable(), anchor: EVENT.nullable(), complete: z.boolean() })

/** Attempts at one page while the archive asks to wait, and the longest wait in seconds. */
const ATTEMPTS = 20
const LONGEST_WAIT = 60

/** Milliseconds without a response after which an archive counts as unavailable. */
const TIMEOUT_MS = 30_000

/**
 * The archive of a token at `url`, the address before `/v1`: the API of the confidential token's specification.
 * @param wait resolves after the given number of milliseconds
 */
export function openHttpArchive(
  url: string,
  token: string,
  wait: (ms: number) => Promise<unknown> = (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
): TokenArchive {
  const base = url.replace(/\/+$/, '')

  async function get<Shape extends z.ZodType>(path: string, query: Query, shape: Shape): Promise<z.output<Shape>> {
    const parameters = Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)]],
    )
    const address = `${base}/v1/tokens/${token}${path}?${new URLSearchParams(parameters)}`
    for (let attempt = 1; ; attempt += 1) {
      const response = await fetch(address, { signal: AbortSignal.timeout(TIMEOUT_MS) }).catch((cause: unknown) => {
        throw unavailable(base, 'does not respond', cause)
      })
      if (response.status !== 429 || attempt === ATTEMPTS) {
        if (!response.ok) throw unavailable(base, `returned status ${response.status}`)
        const parsed = shape.safeParse(await response.json().catch(() => undefined))
        if (!parsed.success) throw unavailable(base, 'returned something other than events', parsed.error)
        return parsed.data
      }
      await wait(Math.min(Number(response.headers.get('retry-after')) || 1, LONGEST_WAIT) * 1_000)
    }
  }

  /** Every page of a range, checked for responses that no honest archive gives. */
  async function readPages(path: string, query: Query, range: LedgerRange): Promise<ArchivedEvents> {
    const events: ArchivedEvent[] = []
    let complete = true
    for (let cursor: string | undefined; ; ) {
      const page = await get(path, { ...query, from_ledger: range.from, to_ledger: range.to, cursor }, PAGE)
      const last = events.at(-1)?.id ?? ''
      if (page.events.some(({ id }, index) => id <= (page.events[index - 1]?.id ?? last))) {
        throw unavailable(base, 'returned events out of order')
      }
      if (page.events.some(({ id }) => !isWithin(ledgerOf(id), range))) {
        throw unavailable(base, 'returned events of other ledgers')
      }
      events.push(...page.events)
      complete &&= page.complete
      if (page.cursor === null) return { events, complete }
      if (page.events.length === 0) throw unavailable(base, 'returned an empty page that is not the last')
      cursor = page.cursor
    }
  }

  return {
    name: base,
    findStart: async (account, atLedger) => {
      const { anchor } = await get(`/accounts/${account}/checkpoint`, { at_ledger: atLedger }, CHECKPOINT)
      return anchor?.ledger_seq
    },
    readEvents: (account, from, to) => readPages(`/accounts/${account}/events`, {}, { from, to }),
    readTransaction: (hash) => readPages('/events', { tx_hash: hash }, {}),
    readToken: (from, to) => readPages('/events', {}, { from, to }),
    readRegistry: async (registry, from, to) => {
      // An archive may ignore the query and return the events of every registry.
      const { events, complete } = await readPages('/registry', { registry }, { from, to })
      return { events: events.filter(({ contract_id }) => contract_id === registry), complete }
    },
  }
}

/** Both ends are included. */
interface LedgerRange {
  from?: number | undefined
  to?: number | undefined
}

const isWithin = (ledger: number, { from = 0, to = Number.POSITIVE_INFINITY }: LedgerRange) =>
  ledger >= from && ledger <= to

type Query = Record<string, string | number | undefined>

const unavailable = (name: string, problem: string, cause?: unknown) =>
  new WalletError('archive-unavailable', `the archive ${name} ${problem}`, { cause })
