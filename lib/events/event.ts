import { z } from 'zod'
import type { AuditAction } from '#drizzle/schema/audit-actions.ts'
import type { events } from '#drizzle/schema/events.ts'

/** Everything that happens to records of an organisation, for programs. */
export const EVENT_TYPES = [
  'contractor.created',
  'contractor.ready',
  'contractor.updated',
  'contractor.deleted',
  'invite.sent',
  'invite.accepted',
  'batch.created',
  'batch.ready',
  'batch.started',
  'batch.completed',
  'batch.failed',
  'batch.deleted',
  'payout.created',
  'payout.ready',
  'payout.pending',
  'payout.paid',
  'payout.failed',
  'payout.canceled',
  'run.approval_added',
  'run.approval_void',
  'run.started',
  'run.completed',
  'run.failed',
] as const
export type EventType = (typeof EVENT_TYPES)[number]

/** The entries of the audit log that are events, by action. */
export const TYPE_OF_ACTION: Partial<Record<AuditAction, EventType>> = {
  'contractor.created': 'contractor.created',
  'contractor.activated': 'contractor.ready',
  'contractor.updated': 'contractor.updated',
  'contractor.removed': 'contractor.deleted',
  'contractor.invited': 'invite.sent',
  'contractor.linked': 'invite.accepted',
  'batch.created': 'batch.created',
  'batch.locked': 'batch.ready',
  'batch.started': 'batch.started',
  'batch.completed': 'batch.completed',
  'batch.failed': 'batch.failed',
  'batch.removed': 'batch.deleted',
  'batch.approved': 'run.approval_added',
  'batch.approval-void': 'run.approval_void',
  'batch.run': 'run.started',
  'batch.run-completed': 'run.completed',
  'batch.run-failed': 'run.failed',
  'payout.created': 'payout.created',
  'payout.readied': 'payout.ready',
  // The entry of the transfer that was recorded for a payout names it.
  'transfer.sponsored': 'payout.pending',
  'payout.claimed': 'payout.pending',
  'payout.paid': 'payout.paid',
  'payout.failed': 'payout.failed',
  'payout.canceled': 'payout.canceled',
}

export const eventShape = z.object({
  id: z.string().meta({ description: 'opaque; `after` continues behind it' }),
  type: z.enum(EVENT_TYPES),
  createdAt: z.iso.datetime().meta({ description: 'when it happened' }),
  data: z
    .object({
      contractorId: z.string().optional(),
      batchId: z.string().optional(),
      payoutId: z.string().optional(),
      status: z.string().optional().meta({ description: 'the status of the record after the event' }),
      txHash: z.string().optional().meta({ description: 'hash of the paying transaction' }),
      externalId: z.string().optional(),
    })
    .meta({ description: 'ids and statuses. Read the records for more' }),
})
export type Event = z.output<typeof eventShape>

type EventRow = Pick<typeof events.$inferSelect, 'number' | 'token' | 'type' | 'createdAt' | 'data'>

export const eventIdOf = ({ number, token }: Pick<EventRow, 'number' | 'token'>): string => `${number}-${token}`

/** The parts of an event's id; undefined for any other text. */
export function parseEventId(id: string): { number: number; token: string } | undefined {
  const [, number, token] = /^(\d{1,15})-([0-9a-f]{16})$/.exec(id) ?? []
  return number === undefined || token === undefined ? undefined : { number: Number(number), token }
}

export function presentEvent(row: EventRow): Event {
  const { type, createdAt, data } = row
  return { id: eventIdOf(row), type: type as EventType, createdAt: createdAt.toISOString(), data }
}
