import { and, eq } from 'drizzle-orm'
import { type contractors, identities, organisations } from '#drizzle/schema/directory.ts'
import type { Identity } from '#lib/auth/session.ts'
import { contractorRow, insertRows } from '#lib/cli/seed/rows.ts'
import type { Batch, BatchWithPayouts } from '#lib/directory/batches/batches.ts'
import type { Payout } from '#lib/directory/payouts/payouts.ts'
import type { Answer, Method } from './api-client.ts'
import { pair } from './inner-transaction.ts'
import type { TestService } from './test-service.ts'

/** The part of a service that a fixture needs: the service may be in another process. */
type RequestService = Pick<TestService, 'ask' | 'db'>

/** A user of the directory with a session. */
export interface User {
  identity: Identity
  session: string
  ask<Body = Record<string, unknown>>(method: Method, path: string, body?: unknown): Promise<Answer<Body>>
}

/** A user with an organisation. */
export interface Employer extends User {
  organisation: string
  /** Inserts a contractor: `ready`, with an address derived from its name, unless `fields` override it. */
  engage(name: string, fields?: Partial<typeof contractors.$inferInsert>): Promise<{ id: string; address: string }>
  /** Creates a batch with a payout to each contractor, in order; locks it unless `draft`. */
  prepare(payees: readonly { id: string }[], options?: { draft?: boolean }): Promise<BatchWithPayouts>
}

export async function openUser(
  service: RequestService & Pick<TestService, 'sessionOf'>,
  identity: Identity,
): Promise<User> {
  return userOf(service, identity, await service.sessionOf(identity))
}

function userOf({ ask }: RequestService, identity: Identity, session: string): User {
  return { identity, session, ask: (method, path, body) => ask(method, path, { session, body }) }
}

/** Signs in with the wallet `address`, and founds its organisation. */
export async function openEmployer(
  service: RequestService & Pick<TestService, 'sessionOf'>,
  address: string,
): Promise<Employer> {
  return await employ(service, await openUser(service, { kind: 'ledger', sub: address }))
}

/** Signs in an employer whose wallet key is derived from `name`. */
export async function employerNamed(
  service: RequestService & Pick<TestService, 'sessionOf'>,
  name: string,
): Promise<Employer> {
  return await openEmployer(service, pair(name).publicKey())
}

/** An employer with an existing session. */
export async function employerWith(
  service: RequestService,
  { address, session }: { address: string; session: string },
): Promise<Employer> {
  return await employ(service, userOf(service, { kind: 'ledger', sub: address }, session))
}

async function employ({ db }: RequestService, user: User): Promise<Employer> {
  await user.ask('GET', '/payouts')
  const { kind, sub } = user.identity
  const [row] = await db
    .select({ organisation: identities.organisation })
    .from(identities)
    .where(and(eq(identities.kind, kind), eq(identities.sub, sub)))
  if (!row) throw new Error('the user was not admitted')
  const { organisation } = row
  const founded = { id: organisation, name: `the organisation of ${sub}`, createdAt: new Date() }
  await db.insert(organisations).values(founded).onConflictDoNothing()
  return {
    ...user,
    organisation,
    engage: async (name, fields = {}) => {
      const address = pair(`${organisation} ${name}`).publicKey()
      const contractor = contractorRow({ organisation, name, address, ...fields })
      await insertRows(db, { contractors: [contractor] })
      return { id: contractor.id, address: contractor.address ?? '' }
    },
    prepare: async (payees, { draft = false } = {}) => {
      const { id } = (await user.ask<Batch>('POST', '/batches', { name: 'a payroll' })).body
      const instructions = payees.map((payee, index) => ({
        contractorId: payee.id,
        encryptedAmount: `sealed ${index}`,
      }))
      const instructed = await user.ask<{ payouts: Payout[] }>('POST', `/batches/${id}/instructions`, { instructions })
      if (instructed.body.payouts.length !== payees.length) throw new Error('some instructions were rejected')
      if (!draft) await user.ask('POST', `/batches/${id}/ready`)
      return (await user.ask<BatchWithPayouts>('GET', `/batches/${id}`)).body
    },
  }
}
