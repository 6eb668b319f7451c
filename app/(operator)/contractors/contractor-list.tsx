import { CONTRACTORS, type ContractorLine } from '#lib/dashboard/contractors.ts'
import { fileColumn, linkColumn, organisationColumn, statusColumn, timeColumn } from '../columns.tsx'
import { dayOf } from '../figures.tsx'
import type { ListDisplay } from '../list-display.ts'
import { ApiReference } from '../record-links.tsx'

export const contractorState = ({ status }: ContractorLine) => (status === 'ready' ? 'payable' : status)

export function registrationWords({ isRegistered, address }: ContractorLine): string {
  if (isRegistered) return 'Registered'
  return address ? 'Not registered' : 'No account yet'
}

export function inviteWords({ isLinked, invitedUntil }: ContractorLine, now: Date): string {
  if (isLinked) return 'Accepted'
  if (invitedUntil === null) return '–'
  return invitedUntil > now ? `Open until ${dayOf(invitedUntil)}` : 'Expired'
}

/** The contractors without their rates, which would reveal pay to the operator. */
export const CONTRACTOR_LIST: ListDisplay<typeof CONTRACTORS.filters, ContractorLine> = {
  records: CONTRACTORS,
  here: '/contractors',
  title: 'Contractors',
  nouns: ['contractor', 'contractors'],
  columns: [
    {
      ...linkColumn('Contractor', 'contractor', (contractor) => contractor),
      isName: true,
      beneath: ({ email }) =>
        email && (
          <div className="text-xs text-soft xl:hidden">
            <Email email={email} />
          </div>
        ),
      value: ({ name }) => name,
    },
    // On the page it is after the organisation.
    fileColumn('Email', ({ email }) => email),
    organisationColumn({ from: 'lg', isName: true }),
    { head: 'Email', from: 'xl', isOmitted: true, cell: ({ email }) => (email ? <Email email={email} /> : '–') },
    statusColumn(contractorState),
    fileColumn('Account', ({ address }) => address),
    fileColumn('On the ledger', registrationWords),
    {
      head: 'Invite',
      from: 'lg',
      cell: (contractor, { now }) => <span className="xl:whitespace-nowrap">{inviteWords(contractor, now)}</span>,
      value: inviteWords,
    },
    timeColumn('Last paid', ({ lastPaidAt }) => lastPaidAt, { from: 'xl', none: 'Never', isShort: true }),
    fileColumn('Created (UTC)', ({ createdAt }) => createdAt),
    fileColumn('Contractor id', ({ id }) => id),
    fileColumn('Organisation id', ({ organisation }) => organisation),
  ],
  empty: () => ({
    title: 'No contractors yet',
    children: (
      <>
        An employer adds them with <code>POST /contractors</code>, or many at once with{' '}
        <code>POST /contractors/bulk</code>; see the <ApiReference />.
      </>
    ),
  }),
}

/** A full email address. If it is too long for a line, it breaks before the `@`. */
function Email({ email }: { email: string }) {
  const at = email.lastIndexOf('@')
  return (
    <span className="inline-block [overflow-wrap:anywhere] min-[90rem]:min-w-74">
      {email.slice(0, at)}
      <wbr />
      {email.slice(at)}
    </span>
  )
}
