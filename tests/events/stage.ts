import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { eq, sql } from 'drizzle-orm'
import { Webhook } from 'standardwebhooks'
import { events } from '#drizzle/schema/events.ts'
import { webhookDeliveries, webhooks } from '#drizzle/schema/webhooks.ts'
import type { EventType } from '#lib/events/event.ts'
import type { Webhooks } from '#lib/events/webhooks.ts'
import { provideService } from '#lib/server/services.ts'
import { accountOf } from '../support/directory.ts'
import { type LocalServer, readBody, serveLocally } from '../support/local-server.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

/** A request that an endpoint got. */
export interface Received {
  headers: IncomingHttpHeaders
  body: string
}

/** An endpoint on the loopback address. Responds with 204 until a test changes that. */
export interface Endpoint extends LocalServer {
  received: Received[]
  answer: (response: ServerResponse, request: Received) => void
  /** the types of the events that it got, in order */
  types(): string[]
}

export async function openEndpoint(port = 0): Promise<Endpoint> {
  const received: Received[] = []
  const endpoint: Omit<Endpoint, keyof LocalServer> = {
    received,
    answer: (response) => response.writeHead(204).end(),
    types: () => received.map(({ body }) => JSON.parse(body).type),
  }
  const server = await serveLocally(async (incoming, outgoing) => {
    const request = { headers: incoming.headers, body: (await readBody(incoming)).toString() }
    received.push(request)
    state.answer(outgoing, request)
  }, port)
  const state: Endpoint = Object.assign(endpoint, server)
  return state
}

/** Verifies a request as a receiver does. @throws if no signature is by this secret */
export const verify = (secret: string, { headers, body }: Received) =>
  new Webhook(secret).verify(body, headers as Record<string, string>)

/** A service whose webhooks may be on this computer. */
export interface Stage extends TestService<'none'> {
  webhooks: Webhooks
  /** the addresses of host names other than localhost, which has its own; without one, a name is not resolved */
  resolves: Map<string, string>
  /** a new employer with a founded organisation */
  employer(): Promise<{ address: string; session: string; organisation: string }>
  /** adds a webhook to the employer */
  hook(session: string, url: string, types?: EventType[]): Promise<{ id: string; secret: string }>
  /** publishes events of an organisation, in this order */
  happen(organisation: string, ...happened: [type: EventType, batchId?: string][]): Promise<void>
  deliveriesOf(id: string): Promise<(typeof webhookDeliveries.$inferSelect)[]>
  hookOf(id: string): Promise<typeof webhooks.$inferSelect | undefined>
  /** makes what waits for its next attempt due */
  passPauses(): Promise<void>
}

let employers = 70_000

export async function openStage(variables: Record<string, string> = {}): Promise<Stage> {
  const service = await openTestService({ variables })
  const resolves = new Map<string, string>()
  const resolve: Webhooks['resolve'] = async (hostname) => {
    const address = hostname === 'localhost' ? '127.0.0.1' : resolves.get(hostname)
    if (address === undefined) throw new Error('ENOTFOUND')
    return [{ address, family: 4 }]
  }
  const context: Webhooks = { ...service.running.webhooks, allowsLoopback: true, resolve }
  provideService(Promise.resolve({ ...service.running, webhooks: context }))
  const { db, ask, wallet } = service
  return {
    ...service,
    webhooks: context,
    resolves,
    employer: async () => {
      employers += 1
      const address = accountOf(employers)
      const session = await wallet(address)
      const { body } = await ask('PATCH', '/me', { session, body: { orgName: `Employer ${employers}` } })
      return { address, session, organisation: (body.employer as { orgId: string }).orgId }
    },
    hook: async (session, url, types) => {
      const { status, body } = await ask('POST', '/webhooks', { session, body: { url, types } })
      if (status !== 200) throw new Error(JSON.stringify(body))
      return { id: String(body.id), secret: String(body.secret) }
    },
    happen: async (organisation, ...happened) => {
      for (const [type, batchId] of happened) {
        const number = sql`(select coalesce(max(number), 0) + 1 from ${events})`
        const data = { status: 'ready', ...(batchId !== undefined && { batchId }) }
        const row = { number, token: 'f00d'.repeat(4), entry: number, organisation, type, data, createdAt: new Date() }
        await db.insert(events).values(row)
      }
    },
    deliveriesOf: (id) =>
      db.select().from(webhookDeliveries).where(eq(webhookDeliveries.webhook, id)).orderBy(webhookDeliveries.event),
    hookOf: async (id) => (await db.select().from(webhooks).where(eq(webhooks.id, id)))[0],
    passPauses: async () => {
      const soon = { due: sql`clock_timestamp()`, leasedUntil: null }
      await db.update(webhookDeliveries).set(soon).where(sql`due is not null`)
    },
  }
}
