import { createHash } from 'node:crypto'
import { Address, Keypair, nativeToScVal, StrKey, xdr } from '@stellar/stellar-sdk'
import { readBody, serveLocally } from './local-server.ts'

/** The token, and the registries that it names. */
export const CONTRACTS = {
  token: StrKey.encodeContract(new Uint8Array(32).fill(1)),
  verifier: StrKey.encodeContract(new Uint8Array(32).fill(2)),
  auditor: StrKey.encodeContract(new Uint8Array(32).fill(3)),
}

/** The G-address of test account `index`. */
export const accountAt = (index: number): string =>
  Keypair.fromRawEd25519Seed(createHash('sha256').update(`account ${index}`).digest()).publicKey()

interface ServedEvent {
  id: string
  ledger: number
  ledgerClosedAt: string
  contractId: string
  txHash: string
  topic: string[]
  value: string
  type: 'contract'
  transactionIndex: number
  operationIndex: number
}

export interface EventsAnswer {
  events: ServedEvent[]
  cursor: string
  latestLedger: number
  oldestLedger: number
}

/** A JSON-RPC server with events, a history that can move and be replaced, and responses that tests may change. */
export interface EventRpc {
  url: string
  oldestLedger: number
  latestLedger: number
  /** identifies the network: a different salt changes every ledger's hash */
  salt: string
  /** the salts of the next requested ledgers, instead of `salt` */
  strangeSalts: string[]
  /** unix seconds at which ledger 0 closed; a ledger takes five */
  epoch: number
  events: ServedEvent[]
  /** base64 XDR of the data of further events; if undefined, each has distinct data */
  data: string | undefined
  /** the maximum number of ledgers that one request scans */
  scan: number
  /** envelopes by transaction hash */
  envelopes: Map<string, string>
  /** counts getEvents */
  requests: number
  /** changes a response of getEvents; undefined: the server hangs up */
  distort: ((answer: EventsAnswer) => EventsAnswer | undefined) | undefined
  /** adds an event to `ledger`, as the next transaction there; by default its hash is made up */
  add(ledger: number, name: string, accounts: readonly string[], contract?: string, txHash?: string): string
  close(): Promise<void>
}

const pad = (toid: bigint, index: number) => `${String(toid).padStart(19, '0')}-${String(index).padStart(10, '0')}`
const endOf = (ledger: number) => pad((BigInt(ledger) << 32n) | 0xffff_ffffn, 4_294_967_295)

export async function startEventRpc(): Promise<EventRpc> {
  const listening = await serveLocally(async (request, response) => {
    const { id, method, params = {} } = JSON.parse(String(await readBody(request)))
    const answered = answer(fake, method, params)
    if (answered === undefined) return response.destroy()
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ jsonrpc: '2.0', id, ...answered }))
  })
  const counts = new Map<number, number>()
  const fake: EventRpc = {
    url: listening.url,
    oldestLedger: 1,
    latestLedger: 1,
    salt: 'first',
    strangeSalts: [],
    epoch: 1_700_000_000,
    events: [],
    data: undefined,
    scan: 10_000,
    envelopes: new Map(),
    requests: 0,
    distort: undefined,
    add: (ledger, name, accounts, contract = CONTRACTS.token, given) => {
      const order = (counts.get(ledger) ?? 0) + 1
      counts.set(ledger, order)
      const txHash = given ?? createHash('sha256').update(`${fake.salt} ${ledger} ${order}`).digest('hex')
      const addresses = accounts.map((account) => new Address(account).toScVal())
      fake.events.push({
        id: pad((BigInt(ledger) << 32n) | (BigInt(order) << 12n), 0),
        ledger,
        ledgerClosedAt: new Date((fake.epoch + 5 * ledger) * 1000).toISOString(),
        contractId: contract,
        txHash,
        topic: [xdr.ScVal.scvSymbol(name), ...addresses].map((topic) => topic.toXdr('base64')),
        value: fake.data ?? nativeToScVal({ order: BigInt(order) }).toXdr('base64'),
        type: 'contract',
        transactionIndex: order,
        operationIndex: 0,
      })
      fake.latestLedger = Math.max(fake.latestLedger, ledger)
      return txHash
    },
    close: listening.close,
  }
  return fake
}

interface Params {
  startLedger?: number
  pagination?: { limit: number; cursor?: string }
  filters?: { contractIds: string[] }[]
  hash?: string
}

function answer(fake: EventRpc, method: string, params: Params): object | undefined {
  const { oldestLedger, latestLedger } = fake
  const closeTimeOf = (ledger: number) => fake.epoch + 5 * ledger
  const range = { oldestLedger, latestLedger, latestLedgerCloseTime: closeTimeOf(latestLedger) }
  if (method === 'getNetwork')
    return { result: { passphrase: 'Standalone Network ; February 2017', protocolVersion: 28 } }
  if (method === 'getHealth') return { result: { status: 'healthy', ...range } }
  if (method === 'getLedgerEntries') return { result: { latestLedger, entries: [] } }
  if (method === 'getTransaction') {
    const envelopeXdr = fake.envelopes.get(params.hash ?? '')
    if (envelopeXdr === undefined) return { result: { status: 'NOT_FOUND', ...range } }
    const transaction = { ledger: oldestLedger, createdAt: closeTimeOf(oldestLedger), envelopeXdr, resultXdr: '' }
    return { result: { status: 'SUCCESS', ...range, ...transaction } }
  }
  const start = params.startLedger
  if (start !== undefined && (start < oldestLedger || start > latestLedger)) {
    const message = `startLedger must be within the ledger range: ${oldestLedger} - ${latestLedger}`
    return { error: { code: -32600, message } }
  }
  if (method === 'getLedgers') {
    const sequence = start ?? 0
    const salt = fake.strangeSalts.shift() ?? fake.salt
    const hash = createHash('sha256').update(`${salt} ${sequence}`).digest('hex')
    return { result: { ledgers: [{ sequence, hash, ledgerCloseTime: String(closeTimeOf(sequence)) }], ...range } }
  }
  if (method !== 'getEvents') return { error: { code: -32601, message: 'method not found' } }
  fake.requests += 1
  const events = pageOf(fake, params)
  return wrap(fake.distort ? fake.distort(events) : events)
}

const wrap = (result: object | undefined) => result && { result }

function pageOf(fake: EventRpc, { startLedger, pagination, filters }: Params): EventsAnswer {
  const { limit, cursor } = pagination ?? { limit: 100 }
  const after = cursor ?? ''
  const first = startLedger ?? Number(BigInt(after.slice(0, 19)) >> 32n)
  const last = Math.min(first + fake.scan - 1, fake.latestLedger)
  const contracts = new Set(filters?.flatMap(({ contractIds }) => contractIds))
  const events: ServedEvent[] = []
  for (let index = lowerBound(fake.events, first); index < fake.events.length && events.length < limit; index += 1) {
    const event = fake.events[index]
    if (!event || event.ledger > last) break
    if (event.id > after && contracts.has(event.contractId)) events.push(event)
  }
  const lastId = events.length === limit ? events.at(-1)?.id : undefined
  const { oldestLedger, latestLedger } = fake
  return { events, cursor: lastId ?? endOf(last), oldestLedger, latestLedger }
}

/** The index of the first event at or after `ledger`; events are in ledger order. */
function lowerBound(events: readonly ServedEvent[], ledger: number): number {
  let [low, high] = [0, events.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((events[middle]?.ledger ?? 0) < ledger) low = middle + 1
    else high = middle
  }
  return low
}
