import { xdr } from '@stellar/stellar-sdk'
import { and, asc, eq, isNotNull, or, sql } from 'drizzle-orm'
import { archiveEvents, archivePayloads } from '#drizzle/schema/archive.ts'
import { envelopes } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import type { Network } from '#lib/stellar/network.ts'
import { type DecodedEnvelope, decodeEnvelope } from '#lib/stellar/node/envelope.ts'
import { lookUp } from '#lib/stellar/transaction.ts'
import { ledgerOf } from './source.ts'
import type { Stream } from './streams.ts'

/** The maximum number of payloads per round: each may need a request to the RPC. */
const MAX_PER_ROUND = 200

type Wanted = Pick<typeof archivePayloads.$inferSelect, 'stream' | 'toid' | 'eventIndex'> & {
  txHash: Uint8Array
  data: Uint8Array
}

/**
 * Fetches missing payloads, from the envelope in the database if there is one, otherwise from the RPC. Marks a payload as
 * lost if the RPC no longer has its transaction.
 * @param stream the token's
 * @throws LedgerError `unavailable`
 */
export async function fetchPayloads(db: Database, network: Network, stream: Stream): Promise<void> {
  const wanted: Wanted[] = await db
    .select({
      stream: archivePayloads.stream,
      toid: archivePayloads.toid,
      eventIndex: archivePayloads.eventIndex,
      txHash: archiveEvents.txHash,
      data: archiveEvents.data,
    })
    .from(archivePayloads)
    .innerJoin(
      archiveEvents,
      and(
        eq(archiveEvents.stream, archivePayloads.stream),
        eq(archiveEvents.toid, archivePayloads.toid),
        eq(archiveEvents.eventIndex, archivePayloads.eventIndex),
      ),
    )
    .where(and(eq(archivePayloads.stream, stream.id), eq(archivePayloads.status, 'wanted')))
    // A transaction that no node returns must not keep the others waiting.
    .orderBy(asc(archivePayloads.tried), asc(archivePayloads.toid))
    .limit(MAX_PER_ROUND)
  for (const payload of wanted) {
    const isIt = and(
      eq(archivePayloads.stream, payload.stream),
      eq(archivePayloads.toid, payload.toid),
      eq(archivePayloads.eventIndex, payload.eventIndex),
      eq(archivePayloads.status, 'wanted'),
    )
    // Counted first: one transaction for which the RPC fails must not keep the others waiting.
    await db
      .update(archivePayloads)
      .set({ tried: sql`${archivePayloads.tried} + 1` })
      .where(isIt)
    const envelope = await findEnvelope(db, network, payload)
    if (envelope === undefined) continue
    const content = envelope === 'lost' ? undefined : payloadOf(envelope, payload.data)
    await db
      .update(archivePayloads)
      .set(content ? { status: 'stored', payload: content } : { status: 'lost' })
      .where(isIt)
  }
}

/** The envelope of an event's transaction; `lost` if the RPC has dropped it, undefined if a node does not have it yet. */
async function findEnvelope(
  db: Database,
  network: Network,
  { toid, txHash }: Wanted,
): Promise<DecodedEnvelope | 'lost' | undefined> {
  const hash = Buffer.from(txHash).toString('hex')
  const [stored] = await db
    .select({ signed: envelopes.signed })
    .from(envelopes)
    .where(and(or(eq(envelopes.outerHash, hash), eq(envelopes.innerHash, hash)), isNotNull(envelopes.signed)))
  if (stored?.signed) return decodeEnvelope(stored.signed, network.passphrase)
  const found = await lookUp(network, hash)
  if (found.status === 'NOT_FOUND') return ledgerOf(toid) < found.oldestLedger ? 'lost' : undefined
  try {
    const decoded = decodeEnvelope(found.envelopeXdr, network.passphrase)
    return (decoded.feeBump?.hashHex ?? decoded.hashHex) === hash ? decoded : undefined
  } catch (error) {
    log('error', 'archive', { failure: describeFailure(error) })
    return undefined
  }
}

/**
 * The `payload` of the call that emitted an event, byte for byte, without the proof. Another contract may have made the
 * call: then its arguments are in the authorizations, which repeat the arguments of every authorized call, or are passed
 * on from those of the outer call. So all arguments are searched for a payload with the event's fields. Undefined if there
 * is none.
 * @param data the event's data, XDR of an ScVal
 */
export function payloadOf({ envelope }: DecodedEnvelope, data: Uint8Array): Uint8Array | undefined {
  const fields = fieldsOf(xdr.ScVal.fromXdr(data))
  return envelope.tx.operations
    .flatMap(argumentsOf)
    .flatMap(payloadsIn)
    .find((payload) => agrees(fieldsOf(payload), fields))
    ?.toXdr()
}

/** The arguments of an operation's call, and of every call that its authorizations name. */
function argumentsOf({ body }: xdr.Operation): xdr.ScVal[] {
  if (body.type !== 'invokeHostFunction') return []
  const { hostFunction, auth } = body.invokeHostFunctionOp
  const own = hostFunction.type === 'hostFunctionTypeInvokeContract' ? hostFunction.invokeContract.args : []
  return [...own, ...auth.flatMap(({ rootInvocation }) => authorizedArguments(rootInvocation))]
}

function authorizedArguments({ function: called, subInvocations }: xdr.SorobanAuthorizedInvocation): xdr.ScVal[] {
  const own = called.type === 'sorobanAuthorizedFunctionTypeContractFn' ? called.contractFn.args : []
  return [...own, ...subInvocations.flatMap(authorizedArguments)]
}

/** The payloads in an argument: bytes that decode to a map with a payload, or such bytes in a list or a map. */
function payloadsIn(argument: xdr.ScVal): xdr.ScVal[] {
  if (argument.type === 'scvVec') return (argument.vec ?? []).flatMap(payloadsIn)
  if (argument.type === 'scvMap') return (argument.map ?? []).flatMap(({ val }) => payloadsIn(val))
  if (argument.type !== 'scvBytes') return []
  try {
    const payload = fieldsOf(xdr.ScVal.fromXdr(argument.bytes.toBytes())).get('payload')
    return payload ? [payload] : []
  } catch {
    // The bytes are something else.
    return []
  }
}

/** The fields of a struct; none for any other value. */
function fieldsOf(value: xdr.ScVal): Map<string, xdr.ScVal> {
  const entries = value.type === 'scvMap' ? (value.map ?? []) : []
  return new Map(entries.flatMap(({ key, val }) => (key.type === 'scvSymbol' ? [[String(key.value), val]] : [])))
}

/** The point of the proof's ephemeral key: no two calls have the same, and both the payload and its event contain it. */
const EPHEMERAL_KEY = 'r_e_point'

/** Whether every field that both contain is the same. */
function agrees(payload: ReadonlyMap<string, xdr.ScVal>, event: ReadonlyMap<string, xdr.ScVal>): boolean {
  const common = [...event].filter(([name]) => payload.has(name))
  return (
    common.some(([name]) => name === EPHEMERAL_KEY) && common.every(([name, val]) => payload.get(name)?.equals(val))
  )
}
