import Link from 'next/link'
import { isSubject } from '#lib/dashboard/audit.ts'
import type { DescribedEntry } from '#lib/dashboard/audit-words.ts'
import { addressOf, type Query } from './query.ts'
import { SentenceWithLinks } from './record-links.tsx'

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
  const { actorKind, actorSub, subjectId, requestId } = rest
  return (
    <details className="min-w-0 text-xs open:basis-full print:hidden">
      <summary className="w-fit leading-6 text-faint">Raw entry</summary>
      <pre className="my-1 rounded-md border border-line bg-surface px-3 py-2 font-mono [overflow-wrap:anywhere] whitespace-pre-wrap">
        {JSON.stringify({ sequence, at, ...rest }, null, 2)}
      </pre>
      <p className="flex flex-wrap gap-x-4">
        {isSubject(subjectId) && <Entries of={{ record: subjectId }}>Entries of this record</Entries>}
        <Entries of={{ actor: `${actorKind}:${actorSub}` }}>Entries by this actor</Entries>
        {requestId !== null && <Effects request={requestId} />}
      </p>
    </details>
  )
}

const LINK = 'inline-block min-h-6 leading-6 text-accent underline-offset-4 hover:underline'

function Entries({ of, children }: { of: Query; children: string }) {
  return (
    <Link href={addressOf('/audit', of)} prefetch={false} className={LINK}>
      {children}
    </Link>
  )
}

function Effects({ request }: { request: string }) {
  return (
    <Link href={addressOf('/search', { q: request })} prefetch={false} className={LINK}>
      Effects of its request
    </Link>
  )
}
