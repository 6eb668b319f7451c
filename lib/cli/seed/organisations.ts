import type { ContractorStatus, contractors, identities, organisations } from '#drizzle/schema/directory.ts'
import type { Actor } from '#lib/db/audit-log.ts'
import { inviteExpiry } from '#lib/directory/contractors/invite-token.ts'
import type { SeededInvite } from './invites.ts'
import { contractorRow, identityRow } from './rows.ts'
import type { Seeding } from './source.ts'
import { CONTRACTOR_STATUSES_AT_THE_END, INVITES, type ORGANISATIONS, PEOPLE } from './story.ts'

const DAY_MS = 86_400_000

/** An organisation of the seed, its ledger account, and the contractors that it can pay. */
export interface Employer {
  id: string
  /** the name of its batches */
  batch: string
  account: string
  /** the user who works with its records */
  actor: Actor
  payees: Contractor[]
}

export type Contractor = typeof contractors.$inferInsert & { id: string }
type Row = typeof organisations.$inferInsert
type User = typeof identities.$inferInsert

/** The rows of an organisation, its users and its contractors; the first has more of them. */
export function makeOrganisation(
  { source, now, more }: Seeding,
  { name, email: contact, hasWallet, batch, index }: (typeof ORGANISATIONS)[number] & { index: number },
): { employer: Employer; organisation: Row; users: User[]; people: Contractor[]; invites: SeededInvite[] } {
  const createdAt = new Date(now.getTime() - (30 - index) * DAY_MS)
  const [id, account] = [source.uuid(), source.address()]
  const user = { organisation: id, createdAt }
  const sub = `seed|${contact}`
  const users = [identityRow({ ...user, kind: 'idp', sub, issuer: 'seed', email: contact })]
  const actor: Actor = hasWallet ? { kind: 'ledger', sub: account } : { kind: 'idp', sub }
  if (hasWallet) users.push(identityRow({ ...user, sub: account, joinedAt: createdAt }))
  const ready = PEOPLE.length - CONTRACTOR_STATUSES_AT_THE_END.length
  const count = PEOPLE.length + (index === 0 ? more : 0)
  const people = Array.from({ length: count }, (_, place): Contractor => {
    const called = PEOPLE[place] ?? `Contractor ${place + 1}`
    const status: ContractorStatus = CONTRACTOR_STATUSES_AT_THE_END[place - ready] ?? 'ready'
    const email = `${called.toLowerCase().replaceAll(' ', '.')}@contractors.example`
    return contractorRow({
      id: source.uuid(),
      organisation: id,
      name: called,
      // Accepting its invite, below, makes it `onboarding`.
      status: status === 'onboarding' ? 'invited' : status,
      email,
      address: status === 'invited' ? null : source.address(),
      pvk: status === 'ready' ? source.hash() + source.hash() : null,
      inviteExpiresAt: inviteExpiry(createdAt),
      createdAt: new Date(createdAt.getTime() + place * 1_000),
    })
  })
  const employer = { id, batch, account, actor, payees: people.filter(({ status }) => status === 'ready') }
  const before = (days: number) => new Date(now.getTime() - days * DAY_MS)
  const invites = people.flatMap(({ id: contractor, email }, place): SeededInvite[] => {
    const { invited, accepted } = INVITES.get(place) ?? {}
    if (!invited || !email) return []
    const acceptedAt = accepted ? before(accepted) : undefined
    return [{ employer: { organisation: id, actor }, contractor, email, invitedAt: before(invited), acceptedAt }]
  })
  return { employer, organisation: { id, name, createdAt }, users, people, invites }
}
