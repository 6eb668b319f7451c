import * as invite from '#app/api/contractors/[id]/invite/route.ts'
import * as contractor from '#app/api/contractors/[id]/route.ts'
import * as bulk from '#app/api/contractors/bulk/route.ts'
import * as contractors from '#app/api/contractors/route.ts'
import * as accept from '#app/api/invites/[token]/accept/route.ts'
import * as identities from '#app/api/me/identities/route.ts'
import * as me from '#app/api/me/route.ts'
import { type Identity, mintSession } from '#lib/auth/session.ts'
import { readEnvironment } from '#lib/config/environment.ts'
import type { Database } from '#lib/db/connection.ts'
import { provideService } from '#lib/server/services.ts'
import { type RunningService, startService } from '#lib/server/start.ts'
import { cloneDatabase } from '../support/database.ts'
import { requireDocumented } from '../support/documented.ts'
import { type RecordedRpc, startRecordedRpc, TOKEN } from './recorded-rpc.ts'

export const ISSUER = 'https://login.example'

/** What a request was answered with. */
export interface Answer {
  status: number
  body: Record<string, unknown>
  headers: Headers
}

/** A service over a database and a recorded ledger, reached through the exported route handlers. */
export interface Office {
  service: RunningService
  db: Database
  databaseUrl: string
  rpc: RecordedRpc
  /** what the service takes for the present time */
  clock: { now: Date }
  /** a session of an account of the ledger */
  wallet(address: string): Promise<string>
  /** a session of a user of the identity provider, whose email is verified */
  user(sub: string, email?: string): Promise<string>
  call(session: string | undefined, method: Method, path: string, body?: unknown): Promise<Answer>
  close(): Promise<void>
}

const METHODS = ['GET', 'POST', 'PATCH', 'DELETE'] as const
export type Method = (typeof METHODS)[number]

type Handler = (request: Request, context: never) => Promise<Response>
type Route = Record<Method, Handler>

const ROUTES: [RegExp, Route][] = [
  [/^\/contractors$/, contractors],
  [/^\/contractors\/bulk$/, bulk],
  [/^\/contractors\/(?<id>[^/]+)$/, contractor],
  [/^\/contractors\/(?<id>[^/]+)\/invite$/, invite],
  [/^\/invites\/(?<token>[^/]+)\/accept$/, accept],
  [/^\/me$/, me],
  [/^\/me\/identities$/, identities],
]

export const NOW = new Date('2026-04-01T12:00:00.123Z')

/** @param variables on top of the office's own configuration */
export async function openOffice(variables: Record<string, string> = {}): Promise<Office> {
  const rpc = await startRecordedRpc()
  const postgres = await cloneDatabase()
  const environment = readEnvironment({
    PUBLIC_URL: 'https://pay.example',
    DATABASE_URL: postgres.url,
    SESSION_SECRET: 'a secret of the directory tests, 32 bytes and more',
    STELLAR_RPC_URL: rpc.url,
    CONFIDENTIAL_TOKEN: TOKEN,
    IDP_ISSUER: ISSUER,
    IDP_AUDIENCE: 'payroll',
    ...variables,
  })
  const service = await startService(environment, postgres.shared)
  const clock = { now: NOW }
  provideService(Promise.resolve({ ...service, now: () => clock.now }))
  const mint = (identity: Identity) => mintSession(service.settings.sessions, identity, clock.now)
  return {
    service,
    db: await service.database(),
    databaseUrl: postgres.url,
    rpc,
    clock,
    wallet: (address) => mint({ kind: 'ledger', sub: address }),
    user: (sub, email) => mint({ kind: 'idp', sub, issuer: ISSUER, email }),
    call,
    close: async () => {
      await service.close()
      await rpc.close()
      await postgres.drop()
    },
  }
}

/** The document must have the answer. */
async function call(session: string | undefined, method: Method, path: string, body?: unknown): Promise<Answer> {
  const url = new URL(`https://pay.example/api${path}`)
  const headers = new Headers()
  if (session !== undefined) headers.set('authorization', `Bearer ${session}`)
  if (body !== undefined) headers.set('content-type', 'application/json')
  const sent = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }
  const request = new Request(url, { method, headers, ...sent })
  for (const [pattern, route] of ROUTES) {
    const match = pattern.exec(url.pathname.slice('/api'.length))
    if (!match) continue
    const context = { params: Promise.resolve({ ...match.groups }) }
    const response = await route[method](request, context as never)
    const { status, headers: answered } = response
    const answer = { status, headers: answered, body: (await response.json()) as Record<string, unknown> }
    requireDocumented({ method, path, ...answer })
    return answer
  }
  throw new Error(`no route ${path}`)
}

/** The id of the record that an answer holds. */
export function idOf({ status, body }: Answer): string {
  if (typeof body.id !== 'string') throw new Error(`no record but ${status} ${JSON.stringify(body)}`)
  return body.id
}

/** One field of every record in a list. */
export function fieldsOf({ body }: Answer, list: string, field: string): unknown[] {
  const records = body[list]
  if (!Array.isArray(records)) throw new Error(`no list but ${JSON.stringify(body)}`)
  return records.map((record: Record<string, unknown>) => record[field])
}
