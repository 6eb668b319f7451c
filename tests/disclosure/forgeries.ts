import type { Bundle } from '#lib/disclosure/bundle.ts'
import { DisclosureError } from '#lib/disclosure/disclosure-error.ts'
import { type DisclosureSource, openLedgerSource } from '#lib/disclosure/ledger-source.ts'
import type { LedgerEvent } from '#lib/disclosure/payment.ts'
import type { DisclosureProver } from '#lib/disclosure/prover.ts'
import { createRequest, type DisclosureRequest } from '#lib/disclosure/request.ts'
import type { VerifierContext } from '#lib/disclosure/verify.ts'
import type { DisclosureCircuit, DisclosureRole } from '#lib/prover/disclosure-circuits.ts'
import type { ArchivedEvent } from '#lib/wallet/archive.ts'
import { encodeField } from '#lib/wallet/grumpkin.ts'
import { seeded, TOKEN } from '../wallet/fixtures.ts'
import { FakeLedger, OTHER_TOKEN } from './fake-ledger.ts'
import type { Case, Honest } from './honest.ts'
import { archiveOf, serverWith } from './stub-sources.ts'

/** The verifier's inputs; by default with the requester's own key and an honest source. */
export interface Received {
  request: DisclosureRequest
  bundles: Bundle[]
  secret?: bigint
  source?: DisclosureSource
  load?: VerifierContext['load']
}

/** Changes one part of an honest disclosure. */
export interface Forgery {
  forge(honest: Honest): Received | Promise<Received>
  /** the roles that it concerns; by default all */
  roles?: readonly DisclosureRole[]
}

export interface ForgerTools {
  prover: DisclosureProver
  /** a proof without zero knowledge, which the plain verifier accepts */
  provePlainly: DisclosureProver['prove']
  /** honest disclosures of every statement */
  all: ReadonlyMap<string, Honest>
}

const AUDITORS = ['auditor-recipient', 'auditor-sender'] as const

export const first = <Item>([item]: readonly Item[]): Item => {
  if (item === undefined) throw new Error('nothing there')
  return item
}

export const archivedOf = (event: LedgerEvent): ArchivedEvent => ({
  id: event.id,
  contract_id: event.contract,
  ledger_seq: event.ledger,
  ledger_close_time: event.closedAt,
  tx_hash: event.transaction,
  event_index: event.eventIndex,
  topics_xdr: [...event.topics],
  data_xdr: event.data,
})

/** The ledger of a case, whose RPC has dropped every event: they are read from these archives. */
export function archivedSource({ ledger }: Case, archives: readonly ArchivedEvent[][], oldestLedger = 1_000_000) {
  const named = archives.map((events, index) => archiveOf(events, true, `https://archive-${index}.example`))
  const { findEvent } = openLedgerSource(serverWith([], undefined, oldestLedger), TOKEN, named)
  return { ...ledger.source(), findEvent }
}

const referenceTo = ({ transaction, eventIndex }: LedgerEvent) => ({ transaction, eventIndex })

/** Every forgery, by its name in the matrix. */
export function forgeriesOf(given: Case, { prover, provePlainly, all }: ForgerTools): Record<string, Forgery> {
  const { ledger, contractor, stranger } = given
  const source = ledger.source()
  const otherKey = stranger.keys.viewingKey

  const changed =
    (change: (bundle: Bundle, honest: Honest) => Partial<Bundle> | Promise<Partial<Bundle>>) =>
    async (honest: Honest): Promise<Received> => {
      const bundle = first(honest.bundles)
      return { request: honest.request, bundles: [{ ...bundle, ...(await change(bundle, honest)) }] }
    }
  const asking =
    (part: Partial<DisclosureRequest>) =>
    ({ request, bundles }: Honest): Received => ({ request: { ...request, ...part } as DisclosureRequest, bundles })
  const reading =
    (part: Partial<DisclosureSource>) =>
    ({ request, bundles }: Honest): Received => ({ request, bundles, source: { ...source, ...part } })
  const readingAccounts = (change: (accounts: Map<string, FakeAccount>) => Map<string, FakeAccount>) =>
    reading({ readAccounts: async (names) => change(await source.readAccounts(names)) })
  /** The source has another event at every position. */
  const finding = (change: (event: LedgerEvent) => LedgerEvent) =>
    reading({ findEvent: async (reference) => change(await source.findEvent(reference)) })
  /** Another payment in place of the first one. */
  const paying = (event: LedgerEvent) => changed(({ events }) => ({ events: [referenceTo(event), ...events.slice(1)] }))

  const honestArchive = ledger.events.map(archivedOf)
  const invented = { ...archivedOf(new FakeLedger().pay(stranger, contractor, 9_000n)), tx_hash: '1'.repeat(64) }
  const claimingInvented = changed(({ events }) => ({
    events: [{ transaction: invented.tx_hash, eventIndex: 0 }, ...events.slice(1)],
  }))
  const archived =
    (archives: ArchivedEvent[][], forge: Forgery['forge'] = (honest) => honest) =>
    async (honest: Honest): Promise<Received> => ({
      ...(await forge(honest)),
      source: archivedSource(given, archives),
    })

  return {
    'a bundle of another statement': {
      forge: ({ request, bundles }) => {
        const { circuit } = first(bundles)
        const other = [...all.values()].find((each) => first(each.bundles).circuit !== circuit)
        return { request, bundles: other?.bundles ?? [] }
      },
    },
    'another secret key': { forge: ({ request, bundles }) => ({ request, bundles, secret: 4_712n }) },
    'no bundle': { forge: ({ request }) => ({ request, bundles: [] }) },
    'the bundle twice': { forge: ({ request, bundles }) => ({ request, bundles: [...bundles, ...bundles] }) },
    'a repeated event': { forge: changed(({ events }) => ({ events: [first(events), ...events] })) },
    'one event behind two references': {
      forge: reading({ findEvent: async () => first(given.paid) }),
    },
    'an event beside a balance': { forge: changed(() => ({ events: [referenceTo(first(given.paid))] })) },
    'no sealed value': { forge: changed(() => ({ sealed: undefined })) },
    'a sealed value beside a threshold': {
      forge: changed(() => ({ sealed: { key: otherKey, value: encodeField(5n) } })),
    },
    'another network': { forge: reading({ readPassphrase: async () => 'Another Network' }) },
    'an event that does not exist': {
      forge: changed(({ events }) => ({
        events: [{ transaction: '0'.repeat(64), eventIndex: 0 }, ...events.slice(1)],
      })),
    },
    'an event that the RPC has dropped, and no archive': { forge: archived([]) },
    'an event that no archive has': { forge: archived([[], []]) },
    'an event that one of two archives invents': {
      forge: archived([[...honestArchive, invented], honestArchive], claimingInvented),
    },
    'an event that one of two archives changes': {
      forge: archived([honestArchive, honestArchive.map((event) => ({ ...event, data_xdr: invented.data_xdr }))]),
    },
    'an event that one of two archives withholds': { forge: archived([honestArchive, []]) },
    'an archive’s event in a ledger that the RPC still has': {
      forge: ({ request, bundles }) => ({ request, bundles, source: archivedSource(given, [honestArchive], 1) }),
    },
    'an event of another contract': { forge: finding((event) => ({ ...event, contract: OTHER_TOKEN })) },
    'an event that is no payment': { forge: finding((event) => ({ ...event, topics: event.topics.slice(0, 2) })) },
    'a payment of strangers': { forge: paying(given.elsewhere) },
    'a payment in the other direction': { forge: paying(given.back) },
    'a payment of the account to itself': {
      forge: (honest) => {
        const [employer, own] = given.toItself
        const event = honest.request.account === contractor.address ? own : employer
        return paying(first([event].flatMap((each) => each ?? [])))(honest)
      },
    },
    'a payment outside the period': { forge: paying(given.early) },
    'an unregistered account': { forge: readingAccounts(() => new Map()) },
    'an unregistered payee': {
      roles: ['sender'],
      forge: readingAccounts((accounts) => new Map([...accounts].filter(([name]) => name !== contractor.address))),
    },
    'an auditor whose key is unknown': {
      roles: AUDITORS,
      forge: reading({
        findAuditorKeys: async () => {
          throw new DisclosureError('auditor-key-unknown', 'it was registered later')
        },
      }),
    },
    'payments under two keys of the auditor': {
      roles: AUDITORS,
      forge: reading({
        findAuditorKeys: async (id, events) => {
          const keys = await source.findAuditorKeys(id, events)
          return [otherKey, ...keys.slice(1)]
        },
      }),
    },
    'another event': {
      forge: changed(({ events }) => {
        const isOther = ({ transaction }: LedgerEvent) => events.every((event) => event.transaction !== transaction)
        const other = given.paid.find(isOther)
        return { events: other ? [referenceTo(other), ...events.slice(1)] : events.toReversed() }
      }),
    },
    'fewer payments than were proved': { forge: changed(({ events }) => ({ events: events.slice(1) })) },
    // The roles of an auditor differ from these by their keys only.
    'a slot that is filled and not counted': {
      roles: ['recipient', 'sender'],
      forge: changed(async (_, { proved }) => {
        const [circuit, inputs, secrets] = first(proved)
        return { proof: await prover.prove(circuit, withFilledSlot(circuit, inputs), secrets) }
      }),
    },
    'the statement’s circuit of another size': {
      forge: changed(({ circuit }, { request }) => ({
        circuit: first(request.circuits.filter((name) => name !== circuit)),
      })),
    },
    'another nonce': { forge: asking({ nonce: '0'.repeat(63).concat('7') }) },
    'another requester': {
      forge: ({ request, bundles }) => {
        const { key } = createRequest(4_712n, request, seeded('another requester'))
        return { request: { ...request, key }, secret: 4_712n, bundles }
      },
    },
    'the key of another account': {
      forge: reading({
        readAccounts: async (names) =>
          new Map(
            [...(await source.readAccounts(names))].map(([name, own]) => [name, { ...own, viewingKey: otherKey }]),
          ),
        findAuditorKeys: async (_, events) => events.map(() => otherKey),
      }),
    },
    'a balance that has changed': {
      forge: readingAccounts(
        (accounts) => new Map([...accounts].map(([name, own]) => [name, { ...own, spendable: otherKey }])),
      ),
    },
    'a lower threshold': { forge: (honest) => asking(thresholdOf(honest, '0.0000001'))(honest) },
    'a higher threshold': { forge: (honest) => asking(thresholdOf(honest, '1.0000000'))(honest) },
    'another sealing key': {
      forge: changed(({ sealed }) => ({ sealed: sealed && { ...sealed, key: otherKey } })),
    },
    'another sealed value': {
      forge: changed(({ sealed }) => ({ sealed: sealed && { ...sealed, value: encodeField(5n) } })),
    },
    'a changed proof': {
      forge: changed(({ proof }) => ({ proof: proof.map((byte, index) => (index === 5_000 ? byte ^ 1 : byte)) })),
    },
    'a proof with a bit that bb drops': {
      // the third highest bit of the last commitment's x coordinate: the word is still a field element
      forge: changed(({ proof }) => ({
        proof: proof.map((byte, index) => (index === proof.length - 96 ? byte ^ 0x20 : byte)),
      })),
    },
    'a proof without zero knowledge': {
      roles: ['recipient'],
      forge: changed(async (_, { proved }) => ({ proof: await provePlainly(...first(proved)) })),
    },
    // With tau of the embedded ledger's string, anything can be proved. This verifier stands in for such a proof.
    'a value of no amount, under a forged proof': {
      forge: async (honest) => ({
        ...(await changed(({ sealed }) => ({ sealed: sealed && { ...sealed, value: encodeField(5n) } }))(honest)),
        load: async () => () => true,
      }),
    },
  }
}

type FakeAccount =
  Awaited<ReturnType<DisclosureSource['readAccounts']>> extends Map<string, infer Account> ? Account : never

const thresholdOf = ({ request }: Honest, amount: string): Partial<DisclosureRequest> =>
  'atMost' in request && request.atMost !== undefined ? { atMost: amount } : { atLeast: amount }

/** Copies the first payment's public inputs into the last slot, which the count leaves out. */
function withFilledSlot(circuit: DisclosureCircuit, inputs: Uint8Array): Uint8Array {
  if (circuit.kind !== 'total') throw new Error('a single payment has no other slot')
  // Before the slots: the token, except for an auditor; one key, except for a sender; and the count.
  const before = { recipient: 4, sender: 2, 'auditor-recipient': 3, 'auditor-sender': 3 }[circuit.role] * 32
  // After them: the requester's key and nonce, then the sealed value and its key, or the threshold.
  const after = (circuit.disclosed === 'value' ? 6 : 4) * 32
  const size = (inputs.length - before - after) / circuit.slots
  const filled = inputs.slice()
  filled.set(inputs.subarray(before, before + size), inputs.length - after - size)
  return filled
}
