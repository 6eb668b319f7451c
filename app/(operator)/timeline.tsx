import Link from 'next/link'
import type { Timeline as Events, TimelineEvent } from '#lib/dashboard/timeline.ts'
import { AuditEntry } from './audit-entry.tsx'
import { Details } from './details.tsx'
import { Moment } from './figures.tsx'
import { addressOf, type Query } from './query.ts'
import { Shape } from './status.tsx'

interface TimelineProps {
  timeline: Events
  /** the query of the audit log that shows older entries */
  older: Query
  network: string
  now: Date
}

/** The events of a record, newest first. */
export function Timeline({ timeline: { events, hasMore }, older, network, now }: TimelineProps) {
  return (
    <section aria-labelledby="timeline" className="mb-8">
      <h2 id="timeline" className="mb-2 font-semibold">
        Timeline
      </h2>
      {events.length === 0 ? (
        <p className="text-soft">Nothing is recorded yet.</p>
      ) : (
        <ol className="divide-y divide-line rounded-lg border border-line bg-surface shadow-card">
          {events.map((event, index) => (
            <li
              key={keyOf(event, index)}
              className="grid gap-x-6 gap-y-0.5 px-4 py-2.5 sm:grid-cols-[13.5rem_minmax(0,1fr)] sm:px-5"
            >
              <p className="text-[0.8125rem] text-soft">
                <Moment at={event.at} now={now} />
              </p>
              <div className="min-w-0">
                <Event event={event} network={network} />
              </div>
            </li>
          ))}
        </ol>
      )}
      {hasMore && (
        <p className="mt-2 text-[0.8125rem] print:hidden">
          <Link
            href={addressOf('/audit', older)}
            prefetch={false}
            className="text-soft underline underline-offset-4 hover:text-accent"
          >
            Older entries in the audit log
          </Link>
        </p>
      )}
    </section>
  )
}

/** Two events may be equal, so their position tells them apart. */
const keyOf = (event: TimelineEvent, index: number) =>
  'entry' in event ? event.entry.sequence : `${event.what} ${index}`

function Event({ event, network }: { event: TimelineEvent; network: string }) {
  const shape = <Shape tone={event.tone ?? 'idle'} />
  if ('entry' in event) {
    return (
      <div className="flex">
        <span>{shape}</span>
        <div className="min-w-0">
          <AuditEntry entry={event.entry} />
        </div>
      </div>
    )
  }
  return (
    <>
      <span className="mr-3">
        {shape}
        {event.what}
      </span>
      <Details detail={event.detail} network={network} />
    </>
  )
}
