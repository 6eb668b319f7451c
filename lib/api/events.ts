import { admitUser } from '#lib/directory/users.ts'
import { eventsQuery, eventsShape, listEvents } from '#lib/events/list.ts'
import { EXAMPLE } from './examples.ts'
import { inGroup, operation } from './operation.ts'

const EVENT_EXAMPLE = {
  id: '1042-6f1b0c9a7d3e5f24',
  type: 'payout.paid' as const,
  createdAt: '2026-03-31T09:30:04.000Z',
  data: {
    payoutId: EXAMPLE.payoutId,
    batchId: EXAMPLE.batchId,
    contractorId: EXAMPLE.contractorId,
    status: 'paid',
    txHash: EXAMPLE.hash,
  },
}

export const EVENT_OPERATIONS = inGroup('Events', [
  operation({
    id: 'listEvents',
    route: 'GET /events',
    caller: 'user',
    extension: true,
    waitsForLedger: true,
    summary: 'Read what has happened, oldest first',
    description: [
      'The events of your organisation, and of payouts to you. Call it again with the id of the last event as `after`, and with',
      '`wait` to receive the next one within a second. An event has ids and statuses, and never a name, an address or an amount.',
      'After a restore from a backup, or once its month was deleted, the id of an event may be unknown: 410 `events-gone`.',
    ].join(' '),
    query: {
      schema: eventsQuery,
      example: {
        after: EVENT_EXAMPLE.id,
        from: '2026-03-01T00:00:00Z',
        type: 'payout.paid,payout.failed',
        limit: '100',
        wait: '25',
      },
    },
    response: {
      description: 'Up to 100 events, or `limit`; none if none has happened',
      schema: eventsShape,
      example: { events: [EVENT_EXAMPLE] },
    },
    refusals: ['events-gone', 'busy'],
    handle: async ({ db, user, session, service, query, request }) => {
      const readUser = () => admitUser({ db, now: service.now() }, session)
      return { events: await listEvents({ db, user, readUser, signal: request.signal }, query) }
    },
  }),
])
