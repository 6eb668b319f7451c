import Link from 'next/link'
import type { AuditLine } from '#lib/dashboard/audit.ts'
import { subjectKindOf } from '#lib/db/audit-log.ts'
import { Details } from '../details.tsx'
import { Moment } from '../figures.tsx'
import { Address } from '../hash.tsx'
import { addressOf } from '../query.ts'
import { OrganisationLink, recordPath } from '../record-links.tsx'
import type { Column } from '../table.tsx'

/** How entries of the audit log are listed. */
export const auditColumns = (network: string, now: Date): Column<AuditLine>[] => [
  {
    head: 'When',
    cell: ({ action, createdAt }) => (
      <>
        <div className="font-medium sm:hidden">{action}</div>
        <div className="max-sm:text-xs max-sm:text-soft">
          <Moment at={createdAt} now={now} />
        </div>
      </>
    ),
    beneath: (entry) => (
      <div className="sm:hidden">
        <Details detail={detailOf(entry)} network={network} />
      </div>
    ),
  },
  {
    head: 'Action',
    from: 'sm',
    cell: (entry) => (
      <>
        <span className="mr-3 font-medium">{entry.action}</span>
        <Details detail={detailOf(entry)} network={network} />
      </>
    ),
  },
  {
    head: 'Organisation',
    isName: true,
    from: 'xl',
    isRepeated: true,
    cell: ({ organisation, organisationName }) =>
      organisation === null || organisationName === null ? (
        '–'
      ) : (
        <OrganisationLink id={organisation} name={organisationName} />
      ),
  },
  { head: 'By', from: 'sm', isRepeated: true, cell: (entry) => <Actor entry={entry} network={network} /> },
  {
    head: 'Record',
    from: 'md',
    isRepeated: true,
    cell: (entry) => <Subject entry={entry} network={network} />,
  },
]

/** An entry's details with the request that caused it. */
const detailOf = ({ detail, requestId }: AuditLine) => (requestId === null ? detail : { ...detail, request: requestId })

/** The kinds of subjects that have a page. */
const SUBJECT_TYPES = ['organisation', 'contractor', 'batch', 'payout', 'transfer'] as const

/**
 * The subject of an entry. A sign-in shows its browser; one from a new browser shows a digest of the client's address.
 */
function Subject({ entry: { action, subjectId }, network }: { entry: AuditLine; network: string }) {
  const subjectKind = subjectKindOf(action)
  const [, newcomer] = /^a new browser of (\w+)$/.exec(subjectId) ?? []
  const type = SUBJECT_TYPES.find((one) => one === subjectKind)
  if (type && /^[0-9a-f-]{36}$/.test(subjectId)) {
    return (
      <Link
        href={recordPath(type, subjectId)}
        prefetch={false}
        className="inline-block min-h-6 underline underline-offset-4 hover:text-accent"
      >
        {subjectKind} {subjectId.slice(0, 8)}
      </Link>
    )
  }
  const isLong = /^\S{21,}$/.test(subjectId)
  // The details contain the transfer's id: several transactions may have been signed for it.
  const isHash = subjectKind === 'transfer' && subjectId.length === 64
  return (
    <span className="xl:whitespace-nowrap">
      <span className="text-soft">{isHash ? 'inner hash' : subjectKind}</span> {newcomer && 'from '}
      {newcomer || isLong ? <Address value={newcomer ?? subjectId} network={network} /> : subjectId}
    </span>
  )
}

function Actor({ entry: { actorKind, actorSub }, network }: { entry: AuditLine; network: string }) {
  const isLong = actorSub.length > 20
  return (
    <span className="xl:whitespace-nowrap">
      {isLong ? <Address value={actorSub} network={network} /> : <span className="whitespace-nowrap">{actorSub}</span>}{' '}
      <Link
        href={addressOf('/audit', { actor: `${actorKind}:${actorSub}` })}
        prefetch={false}
        title={`All entries by ${actorSub}`}
        className="inline-block min-h-6 text-xs leading-6 text-soft underline underline-offset-4 hover:text-accent"
      >
        {actorKind === 'ledger' ? 'wallet' : actorKind === 'idp' ? 'email' : actorKind}
      </Link>
    </span>
  )
}
