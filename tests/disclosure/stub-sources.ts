import { Address, rpc, StrKey, scValToNative, type Transaction, xdr } from '@stellar/stellar-sdk'
import type { ArchivedEvent, TokenArchive } from '#lib/wallet/archive.ts'
import { TOKEN } from '../wallet/fixtures.ts'
import { PASSPHRASE } from './fake-ledger.ts'

/** The ledgers that the RPC has. They close ten days apart. */
export const [OLDEST, LATEST] = [1_000, 2_000]
const DAY = 86_400

export const closedAt = (ledger: number) => new Date(ledger * DAY * 10_000).toISOString()

/** The id of an event; `order` is its transaction's position in the ledger. */
export const idOf = (ledger: number, order = 1) =>
  `${String((BigInt(ledger) << 32n) | (BigInt(order) << 12n)).padStart(19, '0')}-0000000000`

export interface Emission {
  contract?: string
  /** the transaction's position in the ledger */
  order?: number
  data?: xdr.ScVal
}

/** An event as an archive stores it. Topics after the name are addresses, or numbers of 32 bits. */
export function archived(
  ledger: number,
  name: string,
  topics: readonly (string | number)[],
  { contract = TOKEN, order = 1, data = xdr.ScVal.scvMap([]) }: Emission = {},
): ArchivedEvent {
  const encoded = topics.map((topic) =>
    typeof topic === 'number' ? xdr.ScVal.scvU32(topic) : Address.fromString(topic).toScVal(),
  )
  return {
    id: idOf(ledger, order),
    contract_id: contract,
    ledger_seq: ledger,
    ledger_close_time: closedAt(ledger),
    tx_hash: (ledger * 100 + order).toString(16).padStart(64, '0'),
    event_index: 0,
    topics_xdr: [xdr.ScVal.scvSymbol(name), ...encoded].map((topic) => topic.toXdr('base64')),
    data_xdr: data.toXdr('base64'),
  }
}

/** An archive of these events. `complete`: whether it says so. */
export function archiveOf(events: readonly ArchivedEvent[], complete = true, name = 'archive'): TokenArchive {
  const read = async (contract: string, from = 0, through = Number.POSITIVE_INFINITY) => ({
    events: events.filter(
      ({ ledger_seq, contract_id }) => ledger_seq >= from && ledger_seq <= through && contract_id === contract,
    ),
    complete,
  })
  return {
    name,
    findStart: async () => undefined,
    readEvents: (_, from, through) => read(TOKEN, from, through),
    readTransaction: async (hash) => ({ events: events.filter(({ tx_hash }) => tx_hash === hash), complete }),
    readToken: (from, through) => read(TOKEN, from, through),
    readRegistry: read,
  }
}

/** The contracts of a ledger: the registry that the token names now, and the current keys of every registry. */
export interface Registries {
  current: string
  keys: Readonly<Record<string, readonly Uint8Array[]>>
}

/** An RPC that has the ledgers since `oldest`. */
export function serverWith(events: readonly ArchivedEvent[], registries?: Registries, oldest = OLDEST): rpc.Server {
  const server = new rpc.Server('http://localhost:1', { allowHttp: true })
  const matching = (filters: readonly rpc.Api.EventFilter[], startLedger: number) =>
    events.filter((event) => event.ledger_seq >= startLedger && filters.some((filter) => isMatch(event, filter)))
  return Object.assign(server, {
    getNetwork: async () => ({ passphrase: PASSPHRASE }),
    getEvents: async ({
      filters = [],
      startLedger = oldest,
    }: {
      filters?: rpc.Api.EventFilter[]
      startLedger?: number
    }) => {
      if (startLedger < oldest) throw new Error('startLedger must be within the ledger range')
      return {
        events: matching(filters, startLedger).map(asRpcEvent),
        cursor: idOf(LATEST),
        latestLedger: LATEST,
        latestLedgerCloseTime: String(LATEST * DAY * 10),
        oldestLedger: oldest,
        oldestLedgerCloseTime: String(oldest * DAY * 10),
      }
    },
    getTransaction: async () => ({
      status: 'NOT_FOUND',
      latestLedger: LATEST,
      latestLedgerCloseTime: LATEST * DAY * 10,
      oldestLedger: oldest,
      oldestLedgerCloseTime: oldest * DAY * 10,
    }),
    _getLedgers: async ({ startLedger }: { startLedger: number }) => ({
      ledgers: [{ sequence: startLedger, ledgerCloseTime: String(startLedger * DAY * 10) }],
    }),
    getLedgerEntries: async (key: xdr.LedgerKey) => ({
      latestLedger: LATEST,
      entries: registries ? [{ key, val: instanceNaming(registries.current) }] : [],
    }),
    simulateTransaction: async (transaction: Transaction) => {
      const [operation] = transaction.operations
      if (operation?.type !== 'invokeHostFunction' || operation.func.type !== 'hostFunctionTypeInvokeContract')
        throw new Error('another simulation')
      const { contractAddress, args } = operation.func.invokeContract
      const id = Number(scValToNative(args[0] ?? xdr.ScVal.scvVoid()))
      const key = registries?.keys[Address.fromScAddress(contractAddress).toString()]?.[id]
      return key ? { result: { retval: xdr.ScVal.scvBytes(key) } } : { error: 'HostError: Error(Contract, #3301)' }
    },
  })
}

function isMatch({ contract_id, topics_xdr }: ArchivedEvent, { contractIds = [], topics = [] }: rpc.Api.EventFilter) {
  if (contractIds.length > 0 && !contractIds.includes(contract_id)) return false
  const matches = (pattern: readonly string[]) =>
    pattern.length === topics_xdr.length &&
    pattern.every((segment, index) => segment === '*' || segment === topics_xdr[index])
  return topics.length === 0 || topics.some(matches)
}

const asRpcEvent = (event: ArchivedEvent) => ({
  id: event.id,
  type: 'contract',
  contractId: event.contract_id,
  ledger: event.ledger_seq,
  ledgerClosedAt: event.ledger_close_time,
  txHash: event.tx_hash,
  topic: event.topics_xdr.map((topic) => xdr.ScVal.fromXdr(topic, 'base64')),
  value: xdr.ScVal.fromXdr(event.data_xdr, 'base64'),
  operationIndex: 0,
  transactionIndex: 1,
  inSuccessfulContractCall: true,
})

/** The token's instance, whose storage names its auditor registry. */
function instanceNaming(registry: string): xdr.LedgerEntryData {
  const key = xdr.ScVal.scvVec([xdr.ScVal.scvSymbol('Auditor')])
  const storage = [new xdr.ScMapEntry({ key, val: Address.fromString(registry).toScVal() })]
  const executable = xdr.ContractExecutable.contractExecutableStellarAsset()
  return xdr.LedgerEntryData.contractData(
    new xdr.ContractDataEntry({
      ext: xdr.ExtensionPoint.v0(),
      contract: Address.fromString(TOKEN).toScAddress(),
      key: xdr.ScVal.scvLedgerKeyContractInstance(),
      durability: xdr.ContractDataDurability.persistent,
      val: xdr.ScVal.scvContractInstance(new xdr.ScContractInstance({ executable, storage })),
    }),
  )
}

export const contractAt = (index: number) => StrKey.encodeContract(new Uint8Array(32).fill(100 + index))
