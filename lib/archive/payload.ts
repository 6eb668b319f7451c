import { Address, xdr } from '@stellar/stellar-sdk'
import { and, asc, eq, isNotNull, or } from 'drizzle-orm'
import { archiveEvents, archivePayloads } from '#drizzle/schema/archive.ts'
import { envelopes } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { decodeEnvelope } from '#lib/stellar/envelope.ts'
import type { Network } from '#lib/stellar/network.ts'
import { lookUp } from '#lib/stellar/transaction.ts'
import type { Stream } from './generation.ts'
import { ledgerOf } from './source.ts'

/** The maximum number of payloads per round: each may need a request to the RPC. */
const MAX_PER_ROUND = 200

/** The calls whose payloads are kept. */
const CALLS: ReadonlySet<string> = new Set(['set_spender', 'confidential_transfer_from'])

type Wanted = Pick<typeof archivePayloads.$inferSelect, 'stream' | 'toid' | 'eventIndex'> & { txHash: Uint8Array }

/**
 * Fetches missing payloads, from the envelope in the database if there is one, otherwise from the RPC. Marks a payload as
 * lost if the RPC no longer has its transaction.
 * @param stream the token's
 * @throws LedgerError `unavailable`
 */
export async function fetchPayloads(
  db: Database,
  { network, token }: { network: Network; token: string },
  stream: Stream,
): Promise<void> {
  const wanted: Wanted[] = await db
    .select({
      stream: archivePayloads.stream,
      toid: archivePayloads.toid,
      eventIndex: archivePayloads.eventIndex,
      txHash: archiveEvents.txHash,
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
    .orderBy(asc(archivePayloads.toid))
    .limit(MAX_PER_ROUND)
  for (const payload of wanted) {
    const envelope = await findEnvelope(db, network, payload)
    if (envelope === undefined) continue
    const content = envelope === 'lost' ? undefined : payloadOf(envelope, { network, token })
    await db
      .update(archivePayloads)
      .set(content ? { status: 'stored', payload: content } : { status: 'lost' })
      .where(
        and(
          eq(archivePayloads.stream, payload.stream),
          eq(archivePayloads.toid, payload.toid),
          eq(archivePayloads.eventIndex, payload.eventIndex),
          eq(archivePayloads.status, 'wanted'),
        ),
      )
  }
}

/** The envelope of an event's transaction (base64 XDR); `lost` if the RPC has dropped it, undefined if a node does not have it yet. */
async function findEnvelope(db: Database, network: Network, { toid, txHash }: Wanted): Promise<string | undefined> {
  const hash = Buffer.from(txHash).toString('hex')
  const [stored] = await db
    .select({ signed: envelopes.signed })
    .from(envelopes)
    .where(and(or(eq(envelopes.outerHash, hash), eq(envelopes.innerHash, hash)), isNotNull(envelopes.signed)))
  if (stored?.signed) return stored.signed
  const found = await lookUp(network, hash)
  if (found.status !== 'NOT_FOUND') return found.envelopeXdr
  return ledgerOf(toid) < found.oldestLedger ? 'lost' : undefined
}

/**
 * The `payload` of the call's data, byte for byte, without the proof. Undefined if another contract made the call, or if
 * the data isn't that of a confidential token.
 */
export function payloadOf(
  envelopeXdr: string,
  { network, token }: { network: Pick<Network, 'passphrase'>; token: string },
): Uint8Array | undefined {
  try {
    const call = callOf(decodeEnvelope(envelopeXdr, network.passphrase).envelope.tx.operations)
    if (!call || Address.fromScAddress(call.contractAddress).toString() !== token) return undefined
    if (!CALLS.has(call.functionName.toString())) return undefined
    const data = call.args.at(-1)
    if (data?.type !== 'scvBytes') return undefined
    const content = xdr.ScVal.fromXdr(data.bytes.toBytes())
    if (content.type !== 'scvMap') return undefined
    const entry = content.map?.find(({ key }) => key.type === 'scvSymbol' && String(key.value) === 'payload')
    return entry?.val.toXdr()
  } catch (error) {
    log('error', 'archive', { failure: describeFailure(error) })
    return undefined
  }
}

function callOf(operations: readonly xdr.Operation[]): xdr.InvokeContractArgs | undefined {
  const [operation] = operations
  if (operation?.body.type !== 'invokeHostFunction') return undefined
  const { hostFunction } = operation.body.invokeHostFunctionOp
  return hostFunction.type === 'hostFunctionTypeInvokeContract' ? hostFunction.invokeContract : undefined
}
