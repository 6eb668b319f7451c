import type { rpc } from '@stellar/stellar-sdk'
import { isCommitted, LARGEST_PAGE } from '#lib/stellar/events.ts'
import { readLedgerRange } from '#lib/stellar/ledger-range.ts'
import { type ConfidentialAccount, readConfidentialAccounts } from '#lib/wallet/account.ts'
import type { TokenArchive } from '#lib/wallet/archive.ts'
import { type EventPlace, findAuditorKeys } from './auditor-keys.ts'
import type { EventReference } from './bundle.ts'
import { DisclosureError } from './disclosure-error.ts'
import { digest, fromArchive, fromRpc, isOfOperation, readLatestLedger } from './ledger-event.ts'
import type { LedgerEvent } from './payment.ts'
import type { ClosedLedger } from './report.ts'

/** The sources that a verifier reads and trusts: nothing on the ledger contradicts an archive that invents an event. */
export interface DisclosureSource {
  /** of the network that it reads */
  readPassphrase(): Promise<string>
  /** The latest ledger, and when it closed: "now" for a balance. */
  readLatestLedger(): Promise<ClosedLedger>
  /** @throws DisclosureError `event-not-found`, `event-out-of-range`, `archives-differ` */
  findEvent(reference: EventReference): Promise<LedgerEvent>
  /** The events of a transaction from the first source that has it. @throws DisclosureError `event-not-found` */
  readTransaction(hash: string): Promise<LedgerEvent[]>
  /** The registered accounts among `addresses`, as they are now. */
  readAccounts(addresses: readonly string[]): Promise<Map<string, ConfidentialAccount>>
  /** The keys that an auditor had when these events were emitted. @throws DisclosureError `auditor-key-unknown`, `archives-differ` */
  findAuditorKeys(auditorId: number, events: readonly EventPlace[]): Promise<Uint8Array[]>
}

/**
 * Reads from an RPC what it still has, and older events from archives.
 * @param archives all of them must agree about an event
 */
export function openLedgerSource(
  server: rpc.Server,
  token: string,
  archives: readonly TokenArchive[] = [],
): DisclosureSource {
  /** The event on which all archives agree, and the names of the archives that may not have its ledger yet. */
  async function findInArchives(reference: EventReference): Promise<{ event?: LedgerEvent; behind: string[] }> {
    const read = await Promise.all(archives.map((archive) => readArchived(archive, reference.transaction)))
    const [first, ...others] = read.map(({ events }) => pick(events, reference))
    const differing = others.findIndex((other) => digest(other) !== digest(first))
    if (differing >= 0) throw differ(reference, archives[0]?.name, archives[differing + 1]?.name)
    const names = archives.map(({ name }) => name)
    const behind = names.filter((_, index) => !read[index]?.complete)
    return { ...(first && { event: { ...first, source: names.join(' and ') } }), behind }
  }

  async function readFromRpc(transaction: string): Promise<LedgerEvent[] | 'dropped'> {
    const found = await server.getTransaction(transaction)
    if (found.status === 'NOT_FOUND') return 'dropped'
    const events: LedgerEvent[] = []
    const range = { startLedger: found.ledger, endLedger: found.ledger + 1 }
    const isOwn = ({ id, transaction: own }: LedgerEvent) => own === transaction && isOfOperation(id)
    for (let page = await server.getEvents({ filters: [], limit: LARGEST_PAGE, ...range }); ; ) {
      events.push(...page.events.filter(isCommitted).map(fromRpc).filter(isOwn))
      if (page.events.length < LARGEST_PAGE) return events
      page = await server.getEvents({ filters: [], limit: LARGEST_PAGE, cursor: page.cursor })
    }
  }

  return {
    readPassphrase: async () => (await server.getNetwork()).passphrase,
    readLatestLedger: () => readLatestLedger(server),
    readAccounts: (addresses) => readConfidentialAccounts(server, token, addresses),
    findEvent: async (reference) => {
      const recent = await readFromRpc(reference.transaction)
      const present = recent === 'dropped' ? recent : pick(recent, reference)
      const { event: archived, behind } = await findInArchives(reference)
      if (present !== 'dropped') {
        if (archived && digest(archived) !== digest(present)) throw differ(reference, archived.source, 'the RPC')
        if (!present) throw notFound(reference)
        return present
      }
      if (archived) {
        const { oldestLedger } = await readLedgerRange(server)
        if (archived.ledger >= oldestLedger) throw differ(reference, archived.source, 'the RPC')
        return archived
      }
      if (archives.length > 0 && behind.length === 0) throw notFound(reference)
      const [place, late] = [`transaction ${reference.transaction}`, behind.join(' and ')]
      const problem = late
        ? `neither the RPC nor ${late} has ${place}: name an archive that has its ledger`
        : `the RPC does not have ${place} (any more): name an archive`
      throw new DisclosureError('event-out-of-range', problem)
    },
    readTransaction: async (transaction) => {
      const recent = await readFromRpc(transaction)
      if (recent !== 'dropped') return recent
      for (const archive of archives) {
        const { events } = await readArchived(archive, transaction)
        if (events.length > 0) return events
      }
      throw new DisclosureError('event-not-found', `neither the RPC nor an archive has transaction ${transaction}`)
    },
    findAuditorKeys: (auditorId, events) => findAuditorKeys({ server, token, archives }, auditorId, events),
  }
}

async function readArchived(archive: TokenArchive, transaction: string) {
  const { events, complete } = await archive.readTransaction(transaction)
  const own = events.filter(({ tx_hash }) => tx_hash === transaction)
  return { events: own.map((event) => fromArchive(archive, event)), complete }
}

const pick = (events: readonly LedgerEvent[], { eventIndex }: EventReference): LedgerEvent | undefined =>
  events.find((event) => event.eventIndex === eventIndex)

const notFound = ({ transaction, eventIndex }: EventReference) =>
  new DisclosureError('event-not-found', `there is no event ${eventIndex} of transaction ${transaction}`)

const differ = ({ transaction }: EventReference, one = 'one archive', other = 'another') =>
  new DisclosureError('archives-differ', `${one} and ${other} disagree about transaction ${transaction}`)
