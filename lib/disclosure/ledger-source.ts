import { Address, type rpc, scValToNative, xdr } from '@stellar/stellar-sdk'
import { readInstance, settingOf } from '#lib/stellar/asset.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { type ConfidentialAccount, readAuditorKey, readConfidentialAccounts } from '#lib/wallet/account.ts'
import type { ArchivedEvent, TokenArchive } from '#lib/wallet/archive.ts'
import { limitsOf } from '#lib/wallet/events.ts'
import type { EventReference } from './bundle.ts'
import { DisclosureError } from './disclosure-error.ts'
import { isKey, type LedgerEvent } from './payment.ts'

/** Where a verifier reads. It trusts these sources: nothing on the ledger contradicts an archive that invents an event. */
export interface DisclosureSource {
  /** of the network that it reads */
  readPassphrase(): Promise<string>
  /** @throws DisclosureError `event-not-found`, `event-out-of-range`, `archives-differ` */
  findEvent(reference: EventReference): Promise<LedgerEvent>
  /** The events of a transaction from the first source that has it. @throws DisclosureError `event-not-found` */
  readTransaction(hash: string): Promise<LedgerEvent[]>
  /** The registered accounts among `addresses`, as they are now. */
  readAccounts(addresses: readonly string[]): Promise<Map<string, ConfidentialAccount>>
  /** The key that an auditor had when the event was emitted. @throws DisclosureError `auditor-key-unknown` */
  findAuditorKey(auditorId: number, event: Pick<LedgerEvent, 'id' | 'ledger'>): Promise<Uint8Array>
}

/** The part of the RPC client that this file needs. */
export type DisclosureRpc = Pick<
  rpc.Server,
  'getNetwork' | 'getHealth' | 'getTransaction' | 'getEvents' | 'getLedgerEntries' | 'simulateTransaction'
>

/** Largest page of getEvents (stellar-rpc's limit). */
export const PAGE = 10_000

/**
 * Reads from an RPC what it still has, and older events from archives.
 * @param archives all of them must agree about an event
 */
export function openLedgerSource(
  server: rpc.Server & DisclosureRpc,
  token: string,
  archives: readonly TokenArchive[] = [],
): DisclosureSource {
  async function findInArchives(reference: EventReference): Promise<LedgerEvent | undefined> {
    const found = await Promise.all(
      archives.map(async (archive) => pick(await readArchived(archive, reference.transaction), reference)),
    )
    const [first, ...others] = found
    const differing = others.findIndex((other) => digest(other) !== digest(first))
    if (differing >= 0) throw differ(reference, archives[0]?.name, archives[differing + 1]?.name)
    return first && { ...first, source: archives.map(({ name }) => name).join(' and ') }
  }

  async function readFromRpc(transaction: string): Promise<LedgerEvent[] | 'dropped'> {
    const found = await server.getTransaction(transaction)
    if (found.status === 'NOT_FOUND') return 'dropped'
    const events: LedgerEvent[] = []
    const range = { startLedger: found.ledger, endLedger: found.ledger + 1 }
    for (let page = await server.getEvents({ filters: [], limit: PAGE, ...range }); ; ) {
      events.push(...eventsOf(page).filter(({ id, transaction: own }) => own === transaction && isOfOperation(id)))
      if (page.events.length < PAGE) return events
      page = await server.getEvents({ filters: [], limit: PAGE, cursor: page.cursor })
    }
  }

  return {
    readPassphrase: async () => (await server.getNetwork()).passphrase,
    readAccounts: (addresses) => readConfidentialAccounts(server, token, addresses),
    findEvent: async (reference) => {
      const recent = await readFromRpc(reference.transaction)
      const present = recent === 'dropped' ? recent : pick(recent, reference)
      const archived = archives.length === 0 ? undefined : await findInArchives(reference)
      if (present !== 'dropped') {
        if (archived && digest(archived) !== digest(present)) throw differ(reference, archived.source, 'the RPC')
        if (!present) throw notFound(reference)
        return present
      }
      if (archived) {
        const { oldestLedger } = await server.getHealth()
        if (archived.ledger >= oldestLedger) throw differ(reference, archived.source, 'the RPC')
        return archived
      }
      if (archives.length > 0) throw notFound(reference)
      const place = `transaction ${reference.transaction}`
      throw new DisclosureError('event-out-of-range', `the RPC does not have ${place} (any more): name an archive`)
    },
    readTransaction: async (transaction) => {
      const recent = await readFromRpc(transaction)
      if (recent !== 'dropped') return recent
      for (const archive of archives) {
        const archived = await readArchived(archive, transaction)
        if (archived.length > 0) return archived
      }
      throw new DisclosureError('event-not-found', `neither the RPC nor an archive has transaction ${transaction}`)
    },
    findAuditorKey: async (auditorId, event) => {
      const registry = await readRegistryAddress(server, token)
      const later = (await readRegistryEvents(registry, event)).filter((each) => each.id > event.id)
      const [next] = later.flatMap((each) => keyChangeOf(each, auditorId) ?? [])
      if (next && !next.before) throw keyUnknown(auditorId, 'it was registered later')
      if (next?.before) return next.before
      const { passphrase } = await server.getNetwork()
      return await readAuditorKey({ rpc: server, passphrase, token, auditor: registry }, auditorId)
    },
  }

  /** The registry's events from the ledger of `event` on, in ledger order. */
  async function readRegistryEvents(registry: string, { ledger }: Pick<LedgerEvent, 'ledger'>): Promise<LedgerEvent[]> {
    const limits = limitsOf(await server.getHealth())
    const seam = archives.length === 0 ? limits.floor : limits.seam
    const isRecent = ledger >= seam
    const recent: LedgerEvent[] = []
    const filters: rpc.Api.EventFilter[] = [{ type: 'contract', contractIds: [registry] }]
    let page = await server.getEvents({ filters, limit: PAGE, startLedger: isRecent ? ledger : seam })
    for (;;) {
      recent.push(...eventsOf(page))
      if (page.events.length < PAGE && ledgerOf(page.cursor) >= page.latestLedger) break
      page = await server.getEvents({ filters, limit: PAGE, cursor: page.cursor })
    }
    if (isRecent) return recent
    return [...(await readArchivedRegistry(registry, ledger, seam - 1)), ...recent]
  }

  async function readArchivedRegistry(registry: string, from: number, to: number): Promise<LedgerEvent[]> {
    const [first, ...others] = await Promise.all(
      archives.map(async (archive) => {
        const { events, complete } = await archive.readRegistry(from, to)
        if (!complete) throw keyUnknown(undefined, `${archive.name} lacks events of the registry`)
        return events.map((event) => fromArchive(archive, event)).filter(({ contract }) => contract === registry)
      }),
    )
    if (!first) throw keyUnknown(undefined, 'the RPC no longer has the events of the registry: name an archive')
    if (others.some((other) => other.map(digest).join() !== first.map(digest).join())) {
      throw new DisclosureError('archives-differ', 'the archives have different events of the auditor registry')
    }
    return first
  }
}

/** The auditor registry that the token itself names. */
async function readRegistryAddress(server: DisclosureRpc, token: string): Promise<string> {
  const setting = settingOf(await readInstance(server, token), 'Auditor')
  if (setting?.type !== 'scvAddress') {
    throw new LedgerError('foreign-contract', `the contract ${token} is no confidential token`)
  }
  return Address.fromScVal(setting).toString()
}

/** The registration or rotation of an auditor's key. `before` is the key up to then. */
function keyChangeOf({ topics, data }: LedgerEvent, auditorId: number): { before?: Uint8Array } | undefined {
  const [name, id]: unknown[] = topics.map((topic) => scValToNative(xdr.ScVal.fromXdr(topic, 'base64')))
  if (id !== auditorId) return undefined
  if (name === 'auditor_registered') return {}
  if (name !== 'auditor_rotated') return undefined
  const fields: unknown = scValToNative(xdr.ScVal.fromXdr(data, 'base64'))
  const before = typeof fields === 'object' && fields !== null && 'old_point' in fields ? fields.old_point : undefined
  if (!(before instanceof Uint8Array) || !isKey(before)) throw keyUnknown(auditorId, 'its rotation is unreadable')
  return { before: new Uint8Array(before) }
}

/**
 * The events in a page of the RPC. Some nodes also return those of calls that were rolled back inside a successful
 * transaction: a contract could make one up with its payer, so they count as absent.
 */
export function eventsOf({ events }: rpc.Api.GetEventsResponse): LedgerEvent[] {
  return events.filter(({ inSuccessfulContractCall }) => inSuccessfulContractCall !== false).map(fromRpc)
}

function fromRpc(event: rpc.Api.EventResponse): LedgerEvent {
  return {
    id: event.id,
    contract: event.contractId?.toString() ?? '',
    ledger: event.ledger,
    closedAt: new Date(event.ledgerClosedAt).toISOString(),
    transaction: event.txHash,
    eventIndex: indexOf(event.id),
    topics: event.topic.map((topic) => topic.toXdr('base64')),
    data: event.value.toXdr('base64'),
    source: 'the RPC',
  }
}

async function readArchived(archive: TokenArchive, transaction: string): Promise<LedgerEvent[]> {
  const { events } = await archive.readTransaction(transaction)
  return events.filter(({ tx_hash }) => tx_hash === transaction).map((event) => fromArchive(archive, event))
}

const pick = (events: readonly LedgerEvent[], { eventIndex }: EventReference): LedgerEvent | undefined =>
  events.find((event) => event.eventIndex === eventIndex)

export function fromArchive({ name }: TokenArchive, event: ArchivedEvent): LedgerEvent {
  return {
    id: event.id,
    contract: event.contract_id,
    ledger: ledgerOf(event.id),
    closedAt: new Date(event.ledger_close_time).toISOString(),
    transaction: event.tx_hash,
    eventIndex: indexOf(event.id),
    topics: event.topics_xdr,
    data: event.data_xdr,
    source: name,
  }
}

/** Everything that sources must agree about. */
function digest(event: LedgerEvent | undefined): string {
  if (!event) return 'none'
  const { source: _, ...content } = event
  return JSON.stringify(Object.entries(content).toSorted(([one], [other]) => (one < other ? -1 : 1)))
}

/** An event id's first part holds the ledger (SEP-35), its second the event's place in the operation. */
export const ledgerOf = (id: string): number => Number(BigInt(id.split('-')[0] ?? '0') >> 32n)
const indexOf = (id: string): number => Number(id.split('-')[1])

/** The network's fee events have a transaction's hash, and places before and after all transactions of the ledger. */
function isOfOperation(id: string): boolean {
  const order = Number((BigInt(id.split('-')[0] ?? '0') >> 12n) & 0xf_ffffn)
  return order > 0 && order < 0xf_ffff
}

const notFound = ({ transaction, eventIndex }: EventReference) =>
  new DisclosureError('event-not-found', `there is no event ${eventIndex} of transaction ${transaction}`)

const differ = ({ transaction }: EventReference, one = 'one archive', other = 'another') =>
  new DisclosureError('archives-differ', `${one} and ${other} disagree about transaction ${transaction}`)

const keyUnknown = (auditorId: number | undefined, reason: string) =>
  new DisclosureError(
    'auditor-key-unknown',
    `the key of ${auditorId === undefined ? 'the auditor' : `auditor ${auditorId}`} at that ledger is unknown: ${reason}`,
  )
