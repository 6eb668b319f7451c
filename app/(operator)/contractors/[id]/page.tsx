import type { ContractorLine } from '#lib/dashboard/contractors.ts'
import { NEWEST_PAYOUTS, readContractorPage } from '#lib/dashboard/record-pages.ts'
import { ActionForm } from '../../action-form.tsx'
import { Moment } from '../../figures.tsx'
import { Address } from '../../hash.tsx'
import { CONTRACTOR_PAYOUT_COLUMNS } from '../../payouts/payout-list.tsx'
import { PaymentLinks, RecordLink, User } from '../../record-links.tsx'
import { recordPage } from '../../record-page.tsx'
import { Section } from '../../section.tsx'
import { Sign, Status } from '../../status.tsx'
import { Table } from '../../table.tsx'
import { contractorState, inviteWords, registrationWords } from '../contractor-list.tsx'

export const metadata = { title: 'A contractor' }

/** A contractor without its rate, which would reveal its pay to the operator. */
export default recordPage({
  type: 'contractor',
  here: '/contractors',
  read: (db, { id }) => readContractorPage(db, id),
  title: (contractor) => contractor?.name ?? 'A contractor',
  facts: (contractor, { now, network }) => {
    const { id, email, address, isRegistered, lastPaidAt, deletedAt } = contractor
    return {
      Status: <Status is={contractorState(contractor)} />,
      Removed: deletedAt && <Moment at={deletedAt} now={now} />,
      Organisation: <RecordLink type="organisation" id={contractor.organisation} name={contractor.organisationName} />,
      Email: email ? <User sub="" email={email} network={network} /> : '–',
      Account: address ? <Address value={address} network={network} isWhole /> : '–',
      'On the ledger': <Sign tone={isRegistered ? 'good' : 'idle'}>{registrationWords(contractor)}</Sign>,
      Invite: inviteWords(contractor, now),
      Payments: <PaymentLinks of={{ contractor: id }} />,
      'Last paid': lastPaidAt ? <Moment at={lastPaidAt} now={now} /> : 'Never',
      Added: <Moment at={contractor.createdAt} now={now} />,
      'External id': contractor.externalId && <code>{contractor.externalId}</code>,
      'Contractor id': <code>{id}</code>,
    }
  },
  actions: (contractor, { path, service }) =>
    service.settings.mail &&
    hasOpenInvite(contractor) && (
      <ActionForm
        action="resend-invite"
        subject={contractor.id}
        back={path}
        label="Resend the invite"
        why="Why, for the audit log"
      />
    ),
  content: ({ payouts }, { now, network }) =>
    payouts.length > 0 && (
      <Section id="payouts" title="Payouts" note={payouts.length === NEWEST_PAYOUTS && `the newest ${NEWEST_PAYOUTS}`}>
        <Table
          caption="Payouts, newest first"
          view={{ now, network }}
          columns={CONTRACTOR_PAYOUT_COLUMNS}
          rows={payouts}
          keyOf={({ id }) => id}
        />
      </Section>
    ),
})

/** Whether it has an invite that it has not accepted, which can be mailed again. */
const hasOpenInvite = ({ isLinked, invitedUntil, email, deletedAt }: ContractorLine) =>
  !isLinked && invitedUntil !== null && email !== null && deletedAt === null
