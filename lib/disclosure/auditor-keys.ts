import { Address, type rpc, StrKey, scValToNative, xdr } from '@stellar/stellar-sdk'
import { readInstance, settingOf } from '#lib/stellar/asset.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { readLedgerRange } from '#lib/stellar/ledger-range.ts'
import { readAuditorKey } from '#lib/wallet/account.ts'
import type { ArchivedEvents, TokenArchive } from '#lib/wallet/archive.ts'
import { isKey } from '#lib/wallet/commitment.ts'
import { limitsOf } from '#lib/wallet/events.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'
import { DisclosureError } from './disclosure-error.ts'
import { digest, fromArchive, readRecentEvents } from './ledger-event.ts'
import type { LedgerEvent } from './payment.ts'

/** The position of an event on the ledger. */
export type EventPlace = Pick<LedgerEvent, 'id' | 'ledger'>

interface KeySources {
  server: rpc.Server
  token: string
  archives: readonly TokenArchive[]
}

/**
 * The keys that an auditor had when these events were emitted. A registry stores only the current key, and the token
 * names only its current registry. Their events show earlier ones.
 * @throws DisclosureError `auditor-key-unknown`, `archives-differ`
 */
export async function findAuditorKeys(
  sources: KeySources,
  auditorId: number,
  events: readonly EventPlace[],
): Promise<Uint8Array[]> {
  if (events.length === 0) return []
  const from = Math.min(...events.map(({ ledger }) => ledger))
  const registries = await findRegistries(sources, events, from)
  const histories = new Map<string, KeyHistory>()
  for (const registry of new Set(registries)) {
    const ledgers = events.filter((_, index) => registries[index] === registry).map(({ ledger }) => ledger)
    histories.set(registry, await readKeyHistory(sources, { registry, auditorId, from: Math.min(...ledgers) }))
  }
  return events.map(({ id }, index) => {
    const history = histories.get(registries[index] ?? '')
    const next = history?.changes.find((change) => change.id > id)
    if (next && !next.before) throw keyUnknown(auditorId, 'it was registered later')
    const key = next ? next.before : history?.present
    if (!key) throw keyUnknown(auditorId, 'the registry has no such auditor')
    return key
  })
}

/** An auditor's key in a registry, and the events that changed it. `before`: the key up to a rotation. */
interface KeyHistory {
  present: Uint8Array | undefined
  changes: { id: string; before?: Uint8Array }[]
}

/** Reads the current key first: if it is rotated in the meantime, the rotation is among the changes. */
async function readKeyHistory(
  sources: KeySources,
  { registry, auditorId, from }: { registry: string; auditorId: number; from: number },
): Promise<KeyHistory> {
  const { server, token } = sources
  const { passphrase } = await server.getNetwork()
  const present = await readAuditorKey({ rpc: server, passphrase, token, auditor: registry }, auditorId).catch(
    (error: unknown) => {
      if (error instanceof WalletError && error.code === 'would-fail') return undefined
      throw error
    },
  )
  const events = await readSince(sources, from, {
    filter: { type: 'contract', contractIds: [registry] },
    readArchived: (archive, first, last) => archive.readRegistry(registry, first, last),
  })
  return { present, changes: events.flatMap((event) => keyChangeOf(event, auditorId) ?? []) }
}

/** The registration or rotation of an auditor's key. */
function keyChangeOf({ id, topics, data }: LedgerEvent, auditorId: number): KeyHistory['changes'][number] | undefined {
  const [name, subject]: unknown[] = topics.map((topic) => scValToNative(xdr.ScVal.fromXdr(topic, 'base64')))
  if (subject !== auditorId) return undefined
  if (name === 'auditor_registered') return { id }
  if (name !== 'auditor_rotated') return undefined
  const fields: unknown = scValToNative(xdr.ScVal.fromXdr(data, 'base64'))
  const before = typeof fields === 'object' && fields !== null && 'old_point' in fields ? fields.old_point : undefined
  if (!(before instanceof Uint8Array) || !isKey(before)) throw keyUnknown(auditorId, 'its rotation is unreadable')
  return { id, before: new Uint8Array(before) }
}

const AUDITOR_SET = xdr.ScVal.scvSymbol('auditor_set').toXdr('base64')

/** The registry that the token named when each event was emitted. */
async function findRegistries(sources: KeySources, events: readonly EventPlace[], from: number): Promise<string[]> {
  const { server, token } = sources
  const present = await readPresentRegistry(server, token)
  const replacements = await readSince(sources, from, {
    filter: replacementsOf(token),
    readArchived: async (archive, first, last) => onlyReplacements(await archive.readToken(first, last)),
  })
  const registries: string[] = []
  let earlier: string | undefined
  for (const { id } of events) {
    const before = replacements.findLast((each) => each.id < id)
    if (!replacements.some((each) => each.id > id)) registries.push(present)
    else if (before) registries.push(registryIn(before))
    else {
      earlier ??= await findRegistryBefore(sources, from)
      registries.push(earlier)
    }
  }
  return registries
}

/** The auditor registry that the token itself names now. */
async function readPresentRegistry(server: rpc.Server, token: string): Promise<string> {
  const setting = settingOf(await readInstance(server, token), 'Auditor')
  if (setting?.type !== 'scvAddress') {
    throw new LedgerError('foreign-contract', `the contract ${token} is not a confidential token`)
  }
  return Address.fromScVal(setting).toString()
}

/** The registry that the token named at the end of the ledger before `ledger`: in the last event that named one. */
async function findRegistryBefore({ server, token, archives }: KeySources, ledger: number): Promise<string> {
  const { floor } = limitsOf(await readLedgerRange(server))
  const recent = ledger > floor ? await readRecentEvents(server, [replacementsOf(token)], floor) : []
  const last = recent.findLast((event) => event.ledger < ledger)
  if (last) return registryIn(last)
  const [first, ...others] = await Promise.all(
    archives.map(async (archive) => {
      const { events, complete } = onlyReplacements(await archive.readToken(undefined, ledger - 1))
      const found = events.at(-1)
      if (complete && found) return fromArchive(archive, found)
      throw keyUnknown(undefined, `${archive.name} does not know the registry that the token had`)
    }),
  )
  if (!first) throw keyUnknown(undefined, 'the RPC does not know the registry that the token had: name an archive')
  if (others.some((other) => digest(other) !== digest(first))) throw differ()
  return registryIn(first)
}

const replacementsOf = (token: string): rpc.Api.EventFilter => ({
  type: 'contract',
  contractIds: [token],
  topics: [[AUDITOR_SET], [AUDITOR_SET, '*']],
})

const onlyReplacements = ({ events, complete }: ArchivedEvents): ArchivedEvents => ({
  events: events.filter(({ topics_xdr: [name] }) => name === AUDITOR_SET),
  complete,
})

/** The contract that a replacement names: in a topic or in its data. */
function registryIn({ topics, data }: LedgerEvent): string {
  const values = [...topics.slice(1), data].flatMap((value): unknown[] => {
    const native: unknown = scValToNative(xdr.ScVal.fromXdr(value, 'base64'))
    return typeof native === 'object' && native !== null ? Object.values(native) : [native]
  })
  const registry = values.find((value) => typeof value === 'string' && StrKey.isValidContract(value))
  if (typeof registry === 'string') return registry
  throw keyUnknown(undefined, 'the token named no contract as its registry')
}

/** How the events of a contract are read. */
interface Reading {
  filter: rpc.Api.EventFilter
  readArchived(archive: TokenArchive, from: number, to: number): Promise<ArchivedEvents>
}

/** A contract's events from ledger `from` on, in ledger order. All archives must agree. */
async function readSince({ server, archives }: KeySources, from: number, reading: Reading): Promise<LedgerEvent[]> {
  const { floor, seam } = limitsOf(await readLedgerRange(server))
  const joint = archives.length === 0 ? floor : seam
  const recent = await readRecentEvents(server, [reading.filter], Math.max(from, joint))
  if (from >= joint) return recent
  const [first, ...others] = await Promise.all(
    archives.map(async (archive) => {
      const { events, complete } = await reading.readArchived(archive, from, joint - 1)
      if (!complete) throw keyUnknown(undefined, `${archive.name} lacks events of that time`)
      return events.map((event) => fromArchive(archive, event))
    }),
  )
  if (!first) throw keyUnknown(undefined, 'the RPC no longer has the events since: name an archive')
  if (others.some((other) => other.map(digest).join() !== first.map(digest).join())) throw differ()
  return [...first, ...recent]
}

const differ = () => new DisclosureError('archives-differ', 'the archives disagree about the auditor’s key')

const keyUnknown = (auditorId: number | undefined, reason: string) =>
  new DisclosureError(
    'auditor-key-unknown',
    `the key of ${auditorId === undefined ? 'the auditor' : `auditor ${auditorId}`} at that ledger is unknown: ${reason}`,
  )
