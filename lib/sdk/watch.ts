import type { Client } from 'openapi-fetch'
import { patiently } from './patience.ts'
import type { operations, paths } from './payroll-api.d.ts'
import { PayrollError } from './payroll-error.ts'

/** Something that happened to a record: ids and statuses, and never an amount or a name. */
export type PayrollEvent = operations['listEvents']['responses'][200]['content']['application/json']['events'][number]

export interface WatchOptions {
  /** the id of the last event that was handled; without it, the oldest event is the first */
  after?: string | undefined
  /** begins with the events of this time */
  from?: Date | undefined
  /** only these types; all by default */
  types?: readonly PayrollEvent['type'][] | undefined
  /** ends the iteration */
  signal?: AbortSignal | undefined
}

/** How long a request waits for an event (s), and how long a connection that has been lost may stay unnoticed (ms). */
const WAIT_SECONDS = 25
const LOST_AFTER_MS = 60_000

/**
 * The events of the caller's organisation, and of payouts to the caller, oldest first, each within a second of its publication.
 * Asks again while the network or the service fails, and throws once the session has expired: give the client a `renew`. Store the
 * id of each event once it is handled, and pass it as `after` to resume there:
 *
 * `for await (const event of watch(client, { after })) { await handle(event); after = event.id }`
 *
 * @throws PayrollError `events-gone` if the service does not have the event `after`: it was restored from a backup, or the event
 *   was deleted with its month. Read the records, and watch again without `after`.
 * @throws the reason of `signal`
 */
export async function* watch(
  client: Pick<Client<paths>, 'GET'>,
  { after, from, types, signal }: WatchOptions = {},
): AsyncGenerator<PayrollEvent, void, undefined> {
  for (let last = after; ; ) {
    const query = {
      wait: WAIT_SECONDS,
      ...(last !== undefined && { after: last }),
      ...(from && { from: from.toISOString() }),
      ...(types && { type: types.join(',') }),
    }
    const events = await patiently(() => poll(client, query, signal), { attempts: Number.POSITIVE_INFINITY, signal })
    for (const event of events) {
      yield event
      last = event.id
    }
  }
}

/** One long poll. @throws PayrollError `network` if it takes too long */
async function poll(
  client: Pick<Client<paths>, 'GET'>,
  query: NonNullable<operations['listEvents']['parameters']['query']>,
  signal: AbortSignal | undefined,
): Promise<PayrollEvent[]> {
  const lost = AbortSignal.timeout(LOST_AFTER_MS)
  const ends = signal ? AbortSignal.any([signal, lost]) : lost
  try {
    const { data } = await client.GET('/events', { params: { query }, signal: ends })
    return data?.events ?? []
  } catch (cause) {
    if (!lost.aborted || signal?.aborted) throw cause
    throw new PayrollError(Response.error(), { code: 'network', error: 'the connection was lost' }, { cause })
  }
}
