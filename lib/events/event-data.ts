import { inArray } from 'drizzle-orm'
import { batches, contractors, payouts } from '#drizzle/schema/directory.ts'
import type { EventData } from '#drizzle/schema/events.ts'
import type { Database } from '#lib/db/connection.ts'
import type { EventType } from './event.ts'

/** The statuses that types imply: the record may have moved on before its event is published. */
const STATUS_OF: Partial<Record<EventType, string>> = {
  'contractor.ready': 'ready',
  'batch.created': 'draft',
  'batch.ready': 'ready',
  'batch.started': 'started',
  'batch.completed': 'completed',
  'batch.failed': 'failed',
  'payout.created': 'draft',
  'payout.ready': 'ready',
  'payout.pending': 'pending',
  'payout.paid': 'paid',
  'payout.failed': 'failed',
  'payout.canceled': 'canceled',
  'run.started': 'running',
  'run.completed': 'completed',
  'run.failed': 'failed',
}

type Described = EventData & { payee?: string }

/** An event to be published, and the id of the record that it is about. */
interface Subject {
  type: EventType
  record: string
}

/** What each type says: this list, and nothing of the entry but the id of its record. */
export async function readData(tx: Database, typed: readonly Subject[]): Promise<(event: Subject) => Described> {
  const idsOf = (...kinds: string[]) => [
    ...new Set(typed.filter(({ type }) => kinds.includes(kindOf(type))).map(({ record }) => record)),
  ]
  const paid = await byId(idsOf('payout'), (ids) =>
    tx
      .select({
        id: payouts.id,
        batch: payouts.batch,
        contractor: payouts.contractor,
        txHash: payouts.txHash,
        externalId: payouts.externalId,
      })
      .from(payouts)
      .where(inArray(payouts.id, ids)),
  )
  const people = await byId(idsOf('contractor', 'invite'), (ids) =>
    tx
      .select({ id: contractors.id, status: contractors.status, externalId: contractors.externalId })
      .from(contractors)
      .where(inArray(contractors.id, ids)),
  )
  const sets = await byId(idsOf('batch', 'run'), (ids) =>
    tx.select({ id: batches.id, externalId: batches.externalId }).from(batches).where(inArray(batches.id, ids)),
  )
  return ({ type, record }) => {
    const kind = kindOf(type)
    const status = STATUS_OF[type]
    if (kind === 'payout') {
      const payout = paid.get(record)
      return {
        payoutId: record,
        ...(payout && { batchId: payout.batch, contractorId: payout.contractor, payee: payout.contractor }),
        ...(status !== undefined && { status }),
        ...(type === 'payout.paid' && payout?.txHash && { txHash: payout.txHash }),
        ...externalIdOf(payout),
      }
    }
    if (kind === 'contractor' || kind === 'invite') {
      const current = type === 'contractor.deleted' ? undefined : (status ?? people.get(record)?.status)
      return {
        contractorId: record,
        ...(current !== undefined && { status: current }),
        ...externalIdOf(people.get(record)),
      }
    }
    return { batchId: record, ...(status !== undefined && { status }), ...externalIdOf(sets.get(record)) }
  }
}

const externalIdOf = (row: { externalId: string | null } | undefined) =>
  row?.externalId ? { externalId: row.externalId } : {}

const kindOf = (type: EventType): string => type.slice(0, type.indexOf('.'))

async function byId<Row extends { id: string }>(
  ids: string[],
  read: (ids: string[]) => Promise<Row[]>,
): Promise<Map<string, Row>> {
  const rows = ids.length === 0 ? [] : await read(ids)
  return new Map(rows.map((row) => [row.id, row]))
}
