import { contractors, identities, organisations } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { partsOf } from '#lib/db/parts.ts'
import type { Source } from './random.ts'
import { CONTRACTOR_STATUSES_AT_THE_END, ORGANISATIONS, PEOPLE } from './story.ts'

const DAY_MS = 86_400_000

/** An organisation of the seed, its account on the ledger, and whom it can pay. */
export interface SeededOrganisation {
  id: string
  name: string
  /** how its batches are called */
  batch: string
  account: string
  payees: { id: string; address: string }[]
}

/** The organisations with their users and contractors. `extra` are further contractors of the first. */
export async function seedDirectory(
  db: Database,
  source: Source,
  now: Date,
  extra: number,
): Promise<SeededOrganisation[]> {
  const seeded: SeededOrganisation[] = []
  for (const [index, { name, user, batch }] of ORGANISATIONS.entries()) {
    const founded = new Date(now.getTime() - (9 - index) * DAY_MS)
    const [made] = await db
      .insert(organisations)
      .values({ name, createdAt: founded })
      .returning({ id: organisations.id })
    if (!made) throw new Error('an insert without a row')
    const account = source.address()
    await db.insert(identities).values(
      user === 'wallet'
        ? { kind: 'ledger', sub: account, organisation: made.id, createdAt: founded }
        : {
            kind: 'idp',
            sub: `seed|${user}`,
            issuer: 'seed',
            email: user,
            organisation: made.id,
            createdAt: founded,
          },
    )
    const payees = await seedContractors(db, source, made.id, founded, index === 0 ? extra : 0)
    seeded.push({ id: made.id, name, batch, account, payees })
  }
  return seeded
}

async function seedContractors(db: Database, source: Source, organisation: string, founded: Date, extra: number) {
  const ready = PEOPLE.length - CONTRACTOR_STATUSES_AT_THE_END.length
  const rows = Array.from({ length: PEOPLE.length + extra }, (_, index) => {
    const name = PEOPLE[index] ?? `Contractor ${index + 1}`
    const status = CONTRACTOR_STATUSES_AT_THE_END[index - ready] ?? ('ready' as const)
    const email = `${name.toLowerCase().replaceAll(' ', '.')}@contractors.example`
    return {
      organisation,
      name,
      status,
      email,
      emailFolded: email,
      address: status === 'invited' ? null : source.address(),
      pvk: status === 'ready' ? source.hash() + source.hash() : null,
      inviteVersion: 1,
      inviteExpiresAt: new Date(founded.getTime() + 14 * DAY_MS),
      inviteAcceptedAt: status === 'ready' ? founded : null,
      createdAt: new Date(founded.getTime() + index * 1_000),
    }
  })
  const made: { id: string; address: string | null; status: string }[] = []
  for (const part of partsOf(rows)) {
    const { id, address, status } = contractors
    made.push(...(await db.insert(contractors).values(part).returning({ id, address, status })))
  }
  return made.flatMap(({ id, address, status }) => (status === 'ready' && address ? [{ id, address }] : []))
}
