import { and, eq } from 'drizzle-orm'
import * as batchInstructions from '#app/api/batches/[id]/instructions/route.ts'
import * as batchReady from '#app/api/batches/[id]/ready/route.ts'
import * as batch from '#app/api/batches/[id]/route.ts'
import * as batchStatus from '#app/api/batches/[id]/status/route.ts'
import * as batchList from '#app/api/batches/route.ts'
import * as payout from '#app/api/payouts/[id]/route.ts'
import * as payoutList from '#app/api/payouts/route.ts'
import { contractors, identities } from '#drizzle/schema/directory.ts'
import { type Identity, mintSession } from '#lib/auth/session.ts'
import type { Database } from '#lib/db/connection.ts'
import type { Batch, BatchWithPayouts } from '#lib/directory/batches.ts'
import type { Payout } from '#lib/directory/payouts/payouts.ts'
import type { Service } from '#lib/server/services.ts'
import { requireDocumented } from './documented.ts'
import { pair } from './inner-transaction.ts'

/** What a request was answered with. `link` refers to the next page. */
export interface OfficeAnswer<Body> {
  status: number
  body: Body
  link: string | undefined
}

/** A user of the directory. */
export interface OfficeUser {
  identity: Identity
  ask<Body = Record<string, unknown>>(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    body?: unknown,
  ): Promise<OfficeAnswer<Body>>
}

/** A user with an organisation. */
export interface OfficeEmployer extends OfficeUser {
  organisation: string
  /** A contractor record, straight into the table: `ready`, with an address made of its name, unless told otherwise. */
  engage(name: string, fields?: Partial<typeof contractors.$inferInsert>): Promise<{ id: string; address: string }>
  /** A batch with a payout to each contractor, in their order, locked unless it is to stay a draft. */
  prepare(payees: readonly { id: string }[], options?: { draft?: boolean }): Promise<BatchWithPayouts>
}

type Handler = (request: Request, context: never) => Promise<Response>

const ROUTES: [path: RegExp, handlers: Record<'GET' | 'POST' | 'DELETE', Handler>][] = [
  [/^\/batches$/, batchList],
  [/^\/batches\/(?<id>[^/]*)$/, batch],
  [/^\/batches\/(?<id>[^/]*)\/instructions$/, batchInstructions],
  [/^\/batches\/(?<id>[^/]*)\/ready$/, batchReady],
  [/^\/batches\/(?<id>[^/]*)\/status$/, batchStatus],
  [/^\/payouts$/, payoutList],
  [/^\/payouts\/(?<id>[^/]*)$/, payout],
]

/** Asks the exported route handlers, as whoever has `session`. The document must have the answer. */
export async function askRoute<Body>(
  session: string | undefined,
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  body?: unknown,
): Promise<OfficeAnswer<Body>> {
  const url = new URL(`/api${path}`, 'http://localhost:3000')
  const request = new Request(url, {
    method,
    headers: {
      ...(session !== undefined && { Authorization: `Bearer ${session}` }),
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const pathname = url.pathname.slice('/api'.length)
  for (const [pattern, handlers] of ROUTES) {
    const match = pattern.exec(pathname)
    if (!match) continue
    const id = decodeURIComponent(match.groups?.id ?? '')
    const response = await handlers[method](request, { params: Promise.resolve({ id }) } as never)
    const link = /^<(.*)>; rel="next"$/.exec(response.headers.get('link') ?? '')?.[1]
    const { status, headers } = response
    const answer: unknown = await response.json()
    requireDocumented({ method, path, status, headers, body: answer })
    return { status, body: answer as Body, link }
  }
  throw new Error(`no route for ${path}`)
}

/** Whoever has this identity, at a running service. */
export async function openUser(service: Service, identity: Identity): Promise<OfficeUser> {
  const session = await mintSession(service.settings.sessions, identity, service.now())
  return { identity, ask: (method, path, body) => askRoute(session, method, path, body) }
}

/** The employer whose wallet is `address`; signing in founds its organisation. */
export async function openEmployer(service: Service, db: Database, address: string): Promise<OfficeEmployer> {
  return await employ(await openUser(service, { kind: 'ledger', sub: address }), db)
}

/** The same at a service that is another process, which answers at `base`. */
export async function openEmployerAt(
  base: string,
  db: Database,
  { address, session }: { address: string; session: string },
): Promise<OfficeEmployer> {
  const ask = async <Body>(method: string, path: string, body?: unknown): Promise<OfficeAnswer<Body>> => {
    const response = await fetch(`${base}/api${path}`, {
      method,
      headers: { Authorization: `Bearer ${session}`, 'Content-Type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: (await response.json()) as Body, link: undefined }
  }
  return await employ({ identity: { kind: 'ledger', sub: address }, ask }, db)
}

async function employ(user: OfficeUser, db: Database): Promise<OfficeEmployer> {
  await user.ask('GET', '/payouts')
  const { kind, sub } = user.identity
  const [row] = await db
    .select({ organisation: identities.organisation })
    .from(identities)
    .where(and(eq(identities.kind, kind), eq(identities.sub, sub)))
  const organisation = row?.organisation
  if (!organisation) throw new Error('no organisation was founded')
  return {
    ...user,
    organisation,
    engage: async (name, fields = {}) => {
      const address = pair(`${organisation} ${name}`).publicKey()
      const expires = new Date(Date.now() + 14 * 86_400_000)
      const [made] = await db
        .insert(contractors)
        .values({ organisation, name, status: 'ready', address, inviteExpiresAt: expires, ...fields })
        .returning({ id: contractors.id, address: contractors.address })
      if (!made) throw new Error('no contractor was made')
      return { id: made.id, address: made.address ?? '' }
    },
    prepare: async (payees, { draft = false } = {}) => {
      const { id } = (await user.ask<Batch>('POST', '/batches', { name: 'a payroll' })).body
      const instructions = payees.map((payee, index) => ({
        contractorId: payee.id,
        encryptedAmount: `sealed ${index}`,
      }))
      const made = await user.ask<{ payouts: Payout[] }>('POST', `/batches/${id}/instructions`, { instructions })
      if (made.body.payouts.length !== payees.length) throw new Error('not everybody could be instructed')
      if (!draft) await user.ask('POST', `/batches/${id}/ready`)
      return (await user.ask<BatchWithPayouts>('GET', `/batches/${id}`)).body
    },
  }
}
