import { isSubject } from '#lib/dashboard/audit.ts'
import type { DescribedEntry } from '#lib/dashboard/audit-words.ts'
import { addressOf } from './query.ts'
import { ACCENT, PageLink, SentenceWithLinks } from './record-links.tsx'

/** An entry of the audit log: its sentence, and the raw entry behind it. */
export function AuditEntry({ entry }: { entry: DescribedEntry }) {
  return (
    <div className="flex flex-wrap items-baseline gap-x-4">
      <p className="min-w-0 [overflow-wrap:anywhere]">
        <SentenceWithLinks sentence={entry.sentence} />
      </p>
      <RawEntry {...entry} />
    </div>
  )
}

/** The entry as `npm run audit -- export` writes it, and the other entries that have a part of it. */
function RawEntry({ sentence: _, organisationName: __, sequence, createdAt: at, ...rest }: DescribedEntry) {
  const { actorKind, actorSub, subjectId: record, requestId } = rest
  const actor = `${actorKind}:${actorSub}`
  return (
    <details className="min-w-0 text-xs open:basis-full print:hidden">
      <summary className="w-fit leading-6 text-faint">Raw entry</summary>
      <pre className="my-1 rounded-md border border-line bg-surface px-3 py-2 font-mono [overflow-wrap:anywhere] whitespace-pre-wrap">
        {JSON.stringify({ sequence, at, ...rest }, null, 2)}
      </pre>
      <p className="flex flex-wrap gap-x-4">
        {isSubject(record) && (
          <PageLink href={addressOf('/audit', { record })} name="Entries of this record" className={ACCENT} />
        )}
        <PageLink href={addressOf('/audit', { actor })} name="Entries by this actor" className={ACCENT} />
        {requestId !== null && (
          <PageLink href={addressOf('/search', { q: requestId })} name="Effects of its request" className={ACCENT} />
        )}
      </p>
    </details>
  )
}
