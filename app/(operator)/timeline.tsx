import type { Timeline as Events, RowEvent, TimelineEvent } from '#lib/dashboard/timeline.ts'
import { AuditEntry } from './audit-entry.tsx'
import { Moment, type View } from './figures.tsx'
import { Hash, TransactionHash } from './hash.tsx'
import { addressOf, type Query } from './query.ts'
import { isRecordType, PageLink, recordPath } from './record-links.tsx'
import { Section } from './section.tsx'
import { Shape } from './status.tsx'

interface TimelineProps extends View {
  timeline: Events
  /** the query of the audit log that shows older entries */
  older: Query
}

/** The events of a record, newest first. */
export function Timeline({ timeline: { events, hasMore }, older, ...view }: TimelineProps) {
  return (
    <Section id="timeline" title="Timeline">
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
                <Moment at={event.at} now={view.now} />
              </p>
              <div className="min-w-0">
                <Event event={event} network={view.network} />
              </div>
            </li>
          ))}
        </ol>
      )}
      {hasMore && (
        <p className="mt-2 text-[0.8125rem] print:hidden">
          <PageLink href={addressOf('/audit', older)} name="Older entries in the audit log" className={OLDER} />
        </p>
      )}
    </Section>
  )
}

const OLDER = 'text-soft underline underline-offset-4 hover:text-accent'

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

/** The details of an event, with links to the records that it names. */
function Details({ detail, network }: Pick<RowEvent, 'detail'> & { network: string }) {
  return (
    <span className="text-xs [overflow-wrap:anywhere] text-soft">
      {Object.entries(detail).map(([name, value]) => (
        <span key={name} className="mr-3 inline-flex max-w-full items-center gap-x-1">
          <span className="shrink-0 text-faint">{name}:</span>
          <span className="min-w-0">
            <Value name={name} value={Array.isArray(value) ? value.join(', ') : String(value)} network={network} />
          </span>
        </span>
      ))}
    </span>
  )
}

const ID = 'inline-block min-h-6 font-mono leading-6 text-accent underline-offset-4 hover:underline'

function Value({ name, value, network }: { name: string; value: string; network: string }) {
  if (isRecordType(name) && /^[0-9a-f-]{36}$/.test(value)) {
    return <PageLink href={recordPath(name, value)} name={value.slice(0, 8)} className={ID} />
  }
  if (name === 'request') {
    const short = value.length > 12 ? `${value.slice(0, 8)}…` : value
    return <PageLink href={addressOf('/search', { q: value })} name={short} title={value} className={ID} />
  }
  if (name === 'hash' && /^[0-9a-f]{64}$/.test(value)) return <TransactionHash value={value} network={network} />
  return /^[0-9a-f-]{36,64}$|^[GC][A-Z2-7]{55}$/.test(value) ? <Hash value={value} /> : value
}
