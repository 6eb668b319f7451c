import { CONTRACTOR_FILTERS, type ContractorLine, readContractors } from '#lib/dashboard/contractors.ts'
import type { ListFile } from '../csv-file.ts'
import { dayOf } from '../figures.tsx'
import { statusWord } from '../status.tsx'

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
export const CONTRACTOR_LIST: ListFile<typeof CONTRACTOR_FILTERS, ContractorLine> = {
  name: 'contractors',
  checks: CONTRACTOR_FILTERS,
  read: (db, filters) => readContractors(db, filters),
  columns: [
    ['Contractor', ({ name }) => name],
    ['Email', ({ email }) => email],
    ['Organisation', ({ organisationName }) => organisationName],
    ['Status', ({ status }) => statusWord('contractor', status)],
    ['Account', ({ address }) => address],
    ['On the ledger', registrationWords],
    ['Invite', inviteWords],
    ['Last paid (UTC)', ({ lastPaidAt }) => lastPaidAt],
    ['Created (UTC)', ({ createdAt }) => createdAt],
    ['Contractor id', ({ id }) => id],
    ['Organisation id', ({ organisation }) => organisation],
  ],
}
