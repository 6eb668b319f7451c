import { setTimeout } from 'node:timers/promises'
import { and, asc, eq, gt, gte, inArray, max, or, type SQL } from 'drizzle-orm'
import { z } from 'zod'
import { events } from '#drizzle/schema/events.ts'
import type { Database } from '#lib/db/connection.ts'
import { moment } from '#lib/directory/payouts/payouts.ts'
import type { User } from '#lib/directory/users.ts'
import { isEnding } from '#lib/observability/ending.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { inLine, openLine } from '#lib/turns/line.ts'
import { EVENT_TYPES, type Event, type EventType, eventIdOf, eventShape, parseEventId, presentEvent } from './event.ts'
import { publishEvents } from './publish.ts'

const LARGEST_PAGE = 500
const PAGE = 100
const LONGEST_WAIT_SECONDS = 25

const count = (most: number, problem: string) =>
  z
    .string()
    .regex(/^\d{1,3}$/, problem)
    .transform(Number)
    .refine((number) => number <= most, problem)

function typesIn(text: string): EventType[] | undefined {
  const types = text.split(',').map((name) => EVENT_TYPES.find((type) => type === name))
  return types.every((type) => type !== undefined) ? types : undefined
}

function refuseType(context: z.RefinementCtx): never {
  context.addIssue(`must be one or more of ${EVENT_TYPES.join(', ')}`)
  return z.NEVER
}

/** `after` and `from` say where to begin; without them, with the oldest event. */
export const eventsQuery = z.strictObject({
  after: z
    .string()
    .max(100, 'must be the id of an event')
    .optional()
    .meta({ description: 'the id of the last event that you have' }),
  from: moment.optional().meta({ description: 'only events that happened at or after this time' }),
  type: z
    .string()
    .regex(/^[a-z._,]+$/, `must be one or more of ${EVENT_TYPES.join(', ')}`)
    .transform((text, context) => typesIn(text) ?? refuseType(context))
    .optional()
    .meta({ description: 'only these types, separated by commas' }),
  limit: count(LARGEST_PAGE, `must be 1 to ${LARGEST_PAGE}`)
    .refine((limit) => limit > 0, `must be 1 to ${LARGEST_PAGE}`)
    .optional()
    .meta({ description: `how many at most, ${PAGE} by default`, type: 'integer', minimum: 1, maximum: LARGEST_PAGE }),
  wait: count(LONGEST_WAIT_SECONDS, `must be 0 to ${LONGEST_WAIT_SECONDS}`).optional().meta({
    description: 'the seconds to wait for the first event if there is none yet',
    type: 'integer',
    minimum: 0,
    maximum: LONGEST_WAIT_SECONDS,
  }),
})

export const eventsShape = z.object({ events: z.array(eventShape) })

interface EventsContext {
  db: Database
  user: User
  /** the same user as it is now: while a request waits, it may found an organisation, or be removed from one */
  readUser(): Promise<User>
  /** aborts once the caller has disconnected */
  signal: AbortSignal
}

/** A waiting request holds no database connection, but costs memory, and one query for each new event. */
const waiting = openLine({
  atOnce: 200,
  perOwner: 4,
  maxWaiting: 1,
  waitMs: 1,
  code: 'busy',
  message: 'four of your requests wait for events already, or too many of others',
})

/**
 * Lists the events of the user's organisation and of payouts to the user, oldest first.
 * @throws Refusal `events-gone` for an `after` that this database does not have
 */
export async function listEvents(context: EventsContext, query: z.output<typeof eventsQuery>): Promise<Event[]> {
  const { db, user, readUser, signal } = context
  const { after, from, type, limit = PAGE, wait = 0 } = query
  await publishEvents(db)
  const number = after === undefined ? 0 : await findNumber(db, after, visibleTo(user))
  const filter = and(from && gte(events.createdAt, from), type && inArray(events.type, type))
  const read = async (after: number, viewer: User) => {
    const isAfter = and(gt(events.number, after), visibleTo(viewer), filter)
    const rows = await db.select().from(events).where(isAfter).orderBy(asc(events.number)).limit(limit)
    return rows.map(presentEvent)
  }
  const present = await read(number, user)
  if (present.length > 0 || wait === 0) return present
  const owner = `${user.identity.kind} ${user.identity.sub}`
  return await inLine(waiting, owner, () =>
    waitFor(db, async (after) => read(after, await readUser()), { after: number, seconds: wait, signal }),
  )
}

/** What a user sees: nothing of an organisation that it has not founded. */
function visibleTo({ organisation, records }: User): SQL {
  const payees = records.map(({ id }) => id)
  const isVisible = or(
    organisation && eq(events.organisation, organisation.id),
    payees.length > 0 ? inArray(events.payee, payees) : undefined,
  )
  return isVisible ?? eq(events.number, 0)
}

/** An event that the user may not see is unknown, too. */
async function findNumber(db: Database, after: string, isVisible: SQL): Promise<number> {
  const id = parseEventId(after)
  const isIt = id && and(eq(events.number, id.number), eq(events.token, id.token), isVisible)
  const [found] = isIt ? await db.select({ number: events.number }).from(events).where(isIt) : []
  if (found) return found.number
  const [oldest] = await db.select().from(events).where(isVisible).orderBy(asc(events.number)).limit(1)
  throw new Refusal('events-gone', undefined, { details: oldest ? { oldest: eventIdOf(oldest) } : {} })
}

/** How often a process asks for new events while requests wait (ms): a caller has its first event within a second. */
const ASKED_EVERY_MS = 500

let asked: { at: number; newest: Promise<number> } | undefined

/** The number of the newest event, asked for once for all requests that wait in this process. */
function readNewest(db: Database): Promise<number> {
  const at = performance.now()
  if (asked && at - asked.at < ASKED_EVERY_MS) return asked.newest
  const newest = publishEvents(db).then(async () => {
    const [last] = await db.select({ number: max(events.number) }).from(events)
    return last?.number ?? 0
  })
  newest.catch(() => undefined)
  asked = { at, newest }
  return newest
}

async function waitFor(
  db: Database,
  read: (after: number) => Promise<Event[]>,
  { after, seconds, signal }: { after: number; seconds: number; signal: AbortSignal },
): Promise<Event[]> {
  const end = performance.now() + seconds * 1_000
  // What was read once is not read again: one publisher commits events in the order of their numbers.
  let seen = after
  while (!signal.aborted && performance.now() < end) {
    const newest = await readNewest(db)
    if (newest > seen) {
      const present = await read(seen)
      if (present.length > 0) return present
      seen = newest
    }
    if (isEnding()) break
    const pause = Math.max(0, Math.min(ASKED_EVERY_MS, end - performance.now()))
    // It rejects once the caller has gone, which ends the loop.
    await setTimeout(pause, undefined, { signal }).catch(() => undefined)
  }
  return []
}
