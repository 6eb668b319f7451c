import { Address, xdr } from '@stellar/stellar-sdk'
import type { archiveEventAccounts, archiveEvents, EventRole } from '#drizzle/schema/archive.ts'
import { ledgerUnreachable } from '#lib/stellar/ledger-error.ts'
import { ledgerOf, type NetworkEvent, positionOf } from './source.ts'

export type EventRow = typeof archiveEvents.$inferSelect
type AccountRow = typeof archiveEventAccounts.$inferInsert

/** Events that contain an account's whole spendable balance, by the index of the topic with the account. */
const CHECKPOINTS: Readonly<Record<string, number>> = { transfer: 1, withdraw: 1, set_spender: 1 }

/** Events that leave nothing in the receiving balance of the account in their first topic. */
const ANCHORS: ReadonlySet<string> = new Set(['register', 'merge', 'clawback'])

/** Events whose amounts only the payload of their call can show to the owner of the delegation. */
const WITH_PAYLOAD: ReadonlySet<string> = new Set(['set_spender', 'spender_transfer'])

export const wantsPayload = ({ type }: Pick<EventRow, 'type'>): boolean => WITH_PAYLOAD.has(type)

/** An event as the archive stores it. */
export function rowOf(stream: number, event: NetworkEvent): EventRow {
  const topics = event.topic.map((topic) => Buffer.from(topic, 'base64'))
  return {
    stream,
    ...positionOf(event.id),
    closedAt: Math.trunc(Date.parse(event.ledgerClosedAt) / 1000),
    txHash: Buffer.from(event.txHash, 'hex'),
    type: typeOf(event),
    topics: encodeTopics(topics),
    data: Buffer.from(event.value, 'base64'),
  }
}

/** A row for each account that the topics of `event` name. */
export function accountRowsOf(stream: number, event: NetworkEvent): AccountRow[] {
  const type = typeOf(event)
  const roles = new Map<string, EventRole | undefined>()
  for (const [index, topic] of event.topic.entries()) {
    const account = addressOf(topic)
    if (account === undefined) continue
    const role =
      CHECKPOINTS[type] === index ? 'checkpoint' : index === 1 && ANCHORS.has(type) ? ('anchor' as const) : undefined
    roles.set(account, roles.get(account) ?? role)
  }
  const position = positionOf(event.id)
  return [...roles].map(([account, role]) => ({ stream, account, ...position, role: role ?? null }))
}

/** The contract that a configuration event of the token names, such as `auditor_set`. */
export function registryNamedBy(event: NetworkEvent): string | undefined {
  if (!['verifier_set', 'auditor_set'].includes(typeOf(event))) return undefined
  return event.topic.slice(1).map(addressOf).find(isContract) ?? contractIn(xdr.ScVal.fromXdr(event.value, 'base64'))
}

/** An event as the interface presents it (SEP-35 position, base64 XDR). */
export function presentEvent(
  { toid, eventIndex, closedAt, txHash, type, topics, data }: EventRow,
  contract: string,
  payload?: { status: 'wanted' | 'stored' | 'lost'; payload: Uint8Array | null },
) {
  return {
    id: idOf(toid, eventIndex),
    contract_id: contract,
    ledger_seq: ledgerOf(toid),
    ledger_close_time: new Date(closedAt * 1000).toISOString(),
    tx_hash: Buffer.from(txHash).toString('hex'),
    tx_application_order: Number((toid >> 12n) & 0xf_ffffn),
    event_index: eventIndex,
    type,
    topics_xdr: decodeTopics(topics),
    data_xdr: Buffer.from(data).toString('base64'),
    ...(payload?.payload && { payload_xdr: Buffer.from(payload.payload).toString('base64') }),
    ...(payload?.status === 'lost' && { payload_lost: true as const }),
  }
}

/** The RPC's id of an event. */
export const idOf = (toid: bigint, eventIndex: number): string =>
  `${String(toid).padStart(19, '0')}-${String(eventIndex).padStart(10, '0')}`

function typeOf({ topic: [first] }: Pick<NetworkEvent, 'topic'>): string {
  const name = first === undefined ? undefined : decode(first)
  return name?.type === 'scvSymbol' ? String(name.value) : ''
}

/** The address in a topic (base64 XDR), if it is one. */
export function addressOf(topic: string): string | undefined {
  const value = decode(topic)
  return value.type === 'scvAddress' ? Address.fromScVal(value).toString() : undefined
}

/** The first contract address in a value: a struct of one field, or the address itself. */
function contractIn(value: xdr.ScVal): string | undefined {
  if (value.type === 'scvAddress') return [Address.fromScVal(value).toString()].find(isContract)
  if (value.type === 'scvVec') return value.vec?.map(contractIn).find(isContract)
  return value.type === 'scvMap' ? value.map?.map(({ val }) => contractIn(val)).find(isContract) : undefined
}

const isContract = (address: string | undefined): address is string => address?.startsWith('C') === true

/** @throws LedgerError `unavailable` for an invalid ScVal: once stored, such a topic could never be read */
function decode(topic: string): xdr.ScVal {
  try {
    return xdr.ScVal.fromXdr(topic, 'base64')
  } catch (cause) {
    throw ledgerUnreachable(cause)
  }
}

/** The XDR before the elements of an ScVec: the type scvVec, the flag for a present vector, and its length. */
const VECTOR = Buffer.from([0, 0, 0, 16, 0, 0, 0, 1])

/** XDR of an scvVec whose elements are encoded already. */
function encodeTopics(topics: readonly Uint8Array[]): Uint8Array {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(topics.length)
  return Buffer.concat([VECTOR, length, ...topics])
}

/** XDR is canonical: encoding a topic again gives the same bytes. */
function decodeTopics(topics: Uint8Array): string[] {
  const value = xdr.ScVal.fromXdr(topics)
  return (value.type === 'scvVec' ? (value.vec ?? []) : []).map((topic) => topic.toXdr('base64'))
}
