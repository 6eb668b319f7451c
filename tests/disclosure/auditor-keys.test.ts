import { Address, xdr } from '@stellar/stellar-sdk'
import { describe, expect, test } from 'vitest'
import type { DisclosureErrorCode } from '#lib/disclosure/disclosure-error.ts'
import { openLedgerSource } from '#lib/disclosure/ledger-source.ts'
import type { ArchivedEvent, TokenArchive } from '#lib/wallet/archive.ts'
import { auditor, TOKEN } from '../wallet/fixtures.ts'
import { archived, archiveOf, contractAt, idOf, OLDEST, serverWith } from './stub-sources.ts'

const [OLD, NEW, OTHER] = [contractAt(1), contractAt(2), contractAt(3)]
const [first, second, third, foreign] = ['first', 'second', 'third', 'foreign'].map((name) => auditor(name).key) as [
  Uint8Array,
  Uint8Array,
  Uint8Array,
  Uint8Array,
]
const AUDITOR = 1

const mapOf = (fields: Record<string, Uint8Array>) =>
  xdr.ScVal.scvMap(
    Object.entries(fields).map(
      ([name, value]) => new xdr.ScMapEntry({ key: xdr.ScVal.scvSymbol(name), val: xdr.ScVal.scvBytes(value) }),
    ),
  )

interface At {
  order?: number
  contract?: string
  auditorId?: number
}

const rotated = (
  ledger: number,
  [before, after]: readonly [Uint8Array, Uint8Array],
  { auditorId = AUDITOR, contract = OLD, order = 1 }: At = {},
) => {
  const data = mapOf({ old_point: before, new_point: after })
  return archived(ledger, 'auditor_rotated', [auditorId], { contract, order, data })
}
const registered = (ledger: number, key: Uint8Array, { contract = OLD }: At = {}) =>
  archived(ledger, 'auditor_registered', [AUDITOR], { contract, data: mapOf({ point: key }) })

/** The token names a registry: in a topic, or in the data. */
const named = (ledger: number, registry: string) => archived(ledger, 'auditor_set', [registry])
const namedInData = (ledger: number, registry: string) =>
  archived(ledger, 'auditor_set', [], {
    data: xdr.ScVal.scvMap([
      new xdr.ScMapEntry({ key: xdr.ScVal.scvSymbol('auditor'), val: Address.fromString(registry).toScVal() }),
    ]),
  })

interface Story {
  /** in ledger order; the RPC has those from OLDEST on, an archive has all of them */
  events?: ArchivedEvent[]
  /** the registry that the token names now */
  current?: string
  /** the current keys of the auditor by registry; the old registry's is `second` */
  keys?: Record<string, Uint8Array>
  /** by default one with every event */
  archives?: TokenArchive[]
  /** the payment's ledger: by default one that the RPC has */
  paid?: number
}

const PAID = 1_500
const BEFORE = 500

async function findKey({
  events = [],
  current = OLD,
  keys = { [OLD]: second, [NEW]: third },
  paid = PAID,
  archives,
}: Story) {
  const recent = events.filter(({ ledger_seq }) => ledger_seq >= OLDEST)
  const present = Object.fromEntries(Object.entries(keys).map(([contract, key]) => [contract, [foreign, key]]))
  const server = serverWith(recent, { current, keys: present })
  const source = openLedgerSource(server, TOKEN, archives ?? [archiveOf(events)])
  const [key] = await source.findAuditorKeys(AUDITOR, [{ id: idOf(paid, 5), ledger: paid }])
  return key
}

const rotation = rotated(1_600, [first, second])
const oldRotation = rotated(700, [first, second])
const replaced = named(1_700, NEW)

describe('an auditor’s key at a payment', () => {
  const FOUND: [string, Story, Uint8Array][] = [
    ['is the present one if nothing changed since', { events: [rotated(1_400, [first, second])] }, second],
    ['is the one before the next rotation', { events: [rotation, rotated(1_700, [second, third])] }, first],
    ['does not change with another auditor’s', { events: [rotated(1_600, [first, third], { auditorId: 0 })] }, second],
    ['is the one after a rotation in its ledger', { events: [rotated(PAID, [first, second], { order: 4 })] }, second],
    ['is the one before a rotation in its ledger', { events: [rotated(PAID, [first, second], { order: 6 })] }, first],
    ['comes from the archive’s rotation', { paid: BEFORE, events: [oldRotation] }, first],
    [
      'comes from two archives that agree',
      { paid: BEFORE, events: [oldRotation], archives: [archiveOf([oldRotation]), archiveOf([oldRotation])] },
      first,
    ],
    ['needs no archive while the RPC has the ledgers since', { events: [rotation], archives: [] }, first],
    [
      'comes from the registry that the token named at the time',
      { current: NEW, events: [named(1_200, OLD), replaced] },
      second,
    ],
    [
      'comes from a registry that is named in the event’s data',
      { current: NEW, events: [namedInData(1_200, OLD), namedInData(1_700, NEW)] },
      second,
    ],
    [
      'follows the rotations of the earlier registry, not of the present one',
      {
        current: NEW,
        events: [named(1_200, OLD), rotation, rotated(1_650, [foreign, third], { contract: NEW }), replaced],
      },
      first,
    ],
    [
      'comes from the present registry if it was named before the payment',
      { current: NEW, events: [named(1_200, OLD), named(1_400, NEW)] },
      third,
    ],
    [
      'comes from a registry whose naming only the archive has',
      { current: NEW, events: [named(50, OLD), replaced] },
      second,
    ],
    [
      'comes from archives alone for an old payment',
      { paid: BEFORE, current: NEW, events: [named(50, OLD), oldRotation, named(800, NEW)] },
      first,
    ],
  ]

  test.each(FOUND)('%s', async (_, story, key) => {
    await expect(findKey(story)).resolves.toEqual(key)
  })

  const incomplete = archiveOf([], false)
  const REFUSED: [string, DisclosureErrorCode, Story][] = [
    [
      'the RPC has dropped the registry’s events, without an archive',
      'auditor-key-unknown',
      { paid: BEFORE, archives: [] },
    ],
    ['the archive lacks events', 'auditor-key-unknown', { paid: BEFORE, archives: [incomplete] }],
    [
      'one of two archives lacks events',
      'auditor-key-unknown',
      { paid: BEFORE, archives: [archiveOf([]), incomplete] },
    ],
    [
      'one of two archives invents a rotation',
      'archives-differ',
      { paid: BEFORE, archives: [archiveOf([]), archiveOf([oldRotation])] },
    ],
    [
      'one of two archives changes a rotation',
      'archives-differ',
      { paid: BEFORE, archives: [archiveOf([oldRotation]), archiveOf([rotated(700, [foreign, second])])] },
    ],
    [
      'one of two archives withholds that the registry was replaced',
      'archives-differ',
      { paid: BEFORE, archives: [archiveOf([named(50, OLD), named(800, NEW)]), archiveOf([named(50, OLD)])] },
    ],
    ['the auditor registered after the payment', 'auditor-key-unknown', { events: [registered(1_600, second)] }],
    [
      'the old key in a rotation is no key',
      'auditor-key-unknown',
      { events: [rotated(1_600, [new Uint8Array(64), second])] },
    ],
    ['the registry does not know the auditor', 'auditor-key-unknown', { keys: {} }],
    [
      'the registry was replaced and no source has the naming of the earlier one',
      'auditor-key-unknown',
      { current: NEW, events: [replaced] },
    ],
    [
      'the registry was replaced and no archive is named',
      'auditor-key-unknown',
      { current: NEW, events: [named(50, OLD), replaced], archives: [] },
    ],
    [
      'the earlier registry is not named by an address',
      'auditor-key-unknown',
      { current: NEW, events: [archived(1_200, 'auditor_set', []), replaced] },
    ],
    [
      'one of two archives began after the registry was named',
      'auditor-key-unknown',
      { current: NEW, events: [replaced], archives: [archiveOf([named(50, OLD)]), archiveOf([])] },
    ],
    [
      'two archives name different earlier registries',
      'archives-differ',
      { current: NEW, events: [replaced], archives: [archiveOf([named(50, OLD)]), archiveOf([named(50, OTHER)])] },
    ],
  ]

  test.each(REFUSED)('is refused if %s: %s', async (_, code, story) => {
    await expect(findKey(story)).rejects.toMatchObject({ name: 'DisclosureError', code })
  })
})
