import { and, eq, inArray, isNull } from 'drizzle-orm'
import { batches, contractors, IDENTITY_KINDS, identities, organisations, payouts } from '#drizzle/schema/directory.ts'
import { relayChannels } from '#drizzle/schema/relay.ts'
import type { Actor } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import type { NamedRecord } from './attention.ts'
import { findPayoutLines } from './payouts.ts'
import type { Reference } from './sentence.ts'
import { findTransferLines } from './transfers.ts'

/** To whom an account, or a user of the identity provider, belongs. */
interface UserNames {
  email: string | null
  /** of the person, if it is founded */
  organisation: NamedRecord | null
  /** the contractors that it is linked to */
  contractors: (NamedRecord & { organisation: string })[]
}

/** The names of records by id, those of removed contractors included. Deleted batches are absent. */
export type Names = Awaited<ReturnType<typeof findNames>>

export const keyOf = ({ kind, sub }: Actor): string => `${kind}:${sub}`

/** Looks up the names of records and users, with one statement for each type. The recipients of transfers are users, too. */
export async function findNames(db: Database, references: readonly Reference[], actors: readonly Actor[]) {
  const idsOf = (type: Reference['type']) => [
    ...new Set(references.flatMap((reference) => (reference.type === type ? reference.id : []))),
  ]
  const transfers = await lookUp(idsOf('transfer'), (ids) => findTransferLines(db, ids))
  const subs = [...new Set([...actors.map(({ sub }) => sub), ...transfers.map(({ recipient }) => recipient)])]
  return {
    contractors: byId(await lookUp(idsOf('contractor'), (ids) => findNamed(db, contractors, ids))),
    batches: byId(await lookUp(idsOf('batch'), (ids) => findNamed(db, batches, ids))),
    payouts: byId(await lookUp(idsOf('payout'), (ids) => findPayoutLines(db, inArray(payouts.id, ids), ids.length))),
    transfers: byId(transfers),
    /** by `keyOf` */
    users: groupUsers(await lookUp(subs, (some) => findUserNames(db, some))),
    /** the addresses that are channels of a relay */
    channels: new Set((await lookUp(subs, (some) => findChannels(db, some))).map(({ address }) => address)),
  }
}

const lookUp = async <Row>(ids: string[], find: (ids: string[]) => PromiseLike<Row[]>): Promise<Row[]> =>
  ids.length === 0 ? [] : await find(ids)

const byId = <Row extends { id: string }>(rows: readonly Row[]) => new Map(rows.map((row) => [row.id, row]))

function findNamed(db: Database, table: typeof contractors | typeof batches, ids: string[]) {
  return db.select({ id: table.id, name: table.name }).from(table).where(inArray(table.id, ids))
}

function findChannels(db: Database, addresses: string[]) {
  return db
    .selectDistinct({ address: relayChannels.address })
    .from(relayChannels)
    .where(inArray(relayChannels.address, addresses))
}

function findUserNames(db: Database, subs: string[]) {
  const { kind, sub, email } = identities
  const { id, name, organisation, linkedKind, linkedSub, deletedAt } = contractors
  return db
    .select({
      kind,
      sub,
      email,
      organisation: { id: organisations.id, name: organisations.name },
      contractor: { id, name, organisation },
    })
    .from(identities)
    .leftJoin(organisations, eq(organisations.id, identities.organisation))
    .leftJoin(contractors, and(eq(linkedKind, kind), eq(linkedSub, sub), isNull(deletedAt)))
    .where(and(inArray(kind, [...IDENTITY_KINDS]), inArray(sub, subs)))
}

/** A user has a row for each contractor that it is linked to. */
function groupUsers(rows: Awaited<ReturnType<typeof findUserNames>>): Map<string, UserNames> {
  const users = new Map<string, UserNames>()
  for (const { contractor, email, organisation, ...actor } of rows) {
    const user = users.get(keyOf(actor)) ?? { email, organisation, contractors: [] }
    if (contractor) user.contractors.push(contractor)
    users.set(keyOf(actor), user)
  }
  return users
}
