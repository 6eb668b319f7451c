import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { Pool } from 'pg'
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { batchRow, contractorRow, insertRows, organisationRow, payoutRow } from '#lib/cli/seed/rows.ts'
import { csvStream } from '#lib/dashboard/csv.ts'
import { readFilters } from '#lib/dashboard/filters.ts'
import { readWholeList } from '#lib/dashboard/list.ts'
import { PAYOUTS } from '#lib/dashboard/payouts.ts'
import type { Database } from '#lib/db/connection.ts'
import { readOnly } from '#lib/db/read-only.ts'
import { inLine, openLine } from '#lib/turns/line.ts'
import { withResponse } from '#lib/turns/response.ts'
import { openApi } from '../support/api.ts'
import { captureLog } from '../support/console.ts'
import { accountOf } from '../support/directory.ts'
import { serveLocally } from '../support/local-server.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

let service: TestService
let db: Database
beforeAll(async () => {
  service = await openTestService()
  db = await service.running.database()
})
afterAll(() => service?.close())
afterEach(() => vi.restoreAllMocks())

/** Serves one request like the program. A client requests it, and leaves when `mayLeave` resolves. */
async function serveAndLeave(
  respond: (response: ServerResponse) => Promise<unknown>,
  mayLeave: () => Promise<unknown>,
): Promise<{ end: () => Promise<unknown> }> {
  const responses: ServerResponse[] = []
  let outcome: Promise<unknown> = Promise.resolve()
  const server = await serveLocally((_, response) => {
    responses.push(response)
    outcome = withResponse(response, () => respond(response))
  })
  const client = new AbortController()
  const request = fetch(server.url, { signal: client.signal }).then((response) => response.text())
  request.catch(() => undefined)
  await mayLeave()
  client.abort()
  const [response] = responses
  if (response && !response.destroyed) await once(response, 'close')
  return {
    end: async () => {
      await outcome.finally(() => server.close())
    },
  }
}

/** Replaces what the modules of this process share under a name, until the test ends. */
function replacePerProcess(name: string, value: unknown): void {
  const { payroll: shared } = globalThis as unknown as { payroll: Map<string, unknown> }
  const own = shared.get(name)
  shared.set(name, value)
  onTestFinished(() => void (own === undefined ? shared.delete(name) : shared.set(name, own)))
}

/** Counts the queries of the service's database from now on. */
function spyOnQueries() {
  const { $client } = db as unknown as { $client: Record<'connect' | 'query', () => unknown> }
  return vi.spyOn($client, $client instanceof Pool ? 'connect' : 'query')
}

test('does not read a list of the API whose client left while it waited in line', async () => {
  const session = await service.wallet(accountOf(1))
  const api = await openApi()
  captureLog()
  const line = openLine({ atOnce: 1 })
  replacePerProcess('lists', line)
  const place = Promise.withResolvers<void>()
  void inLine(line, 'another owner', () => place.promise)
  const list = () =>
    api(new Request(`${service.base}/api/contractors`, { headers: { Authorization: `Bearer ${session}` } }))

  const { end } = await serveAndLeave(
    async () => expect((await list()).status).toBe(503),
    () => expect.poll(() => line.owners.size).toBe(2),
  )
  const queries = spyOnQueries()
  place.resolve()
  await end()
  expect(queries).not.toHaveBeenCalled()
  expect((await list()).status).toBe(200)
})

test('does not read the next part of a file whose client has left', async () => {
  const organisation = organisationRow()
  const batch = batchRow({ organisation: organisation.id })
  const contractors = [1, 2, 3].map(() => contractorRow({ organisation: organisation.id }))
  const payouts = contractors.map(({ id: contractor }) =>
    payoutRow({ organisation: organisation.id, batch: batch.id, contractor }),
  )
  await insertRows(db, { organisations: [organisation], batches: [batch], contractors, payouts })
  const { filters } = readFilters(PAYOUTS.filters, {})
  const written: string[] = []
  const left = Promise.withResolvers<void>()
  async function* parts() {
    for await (const rows of await readWholeList(PAYOUTS, { db: readOnly(db), now: new Date() }, filters, 1)) {
      written.push(...rows.map(({ id }) => id))
      yield rows.map(({ id }) => [id])
      await left.promise
    }
  }
  const { end } = await serveAndLeave(
    async (response) => {
      for await (const part of csvStream(['id'], parts())) response.write(part)
    },
    () => expect.poll(() => written).toHaveLength(1),
  )
  const queries = spyOnQueries()
  left.resolve()
  await expect(end()).rejects.toThrow()
  expect(queries).not.toHaveBeenCalled()
  expect(written).toEqual([payouts[0]?.id])
})
