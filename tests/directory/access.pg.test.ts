import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { contractors } from '#drizzle/schema/directory.ts'
import { CALLERS } from '#lib/api/caller.ts'
import { OPERATIONS } from '#lib/api/interface.ts'
import type { Operation } from '#lib/api/operation.ts'
import { refusalsOf } from '#lib/api/operation-refusals.ts'
import type { BatchWithPayouts } from '#lib/directory/batches/batches.ts'
import { type Employer, employerNamed, openUser, type User } from '../support/fixtures.ts'
import { pair } from '../support/inner-transaction.ts'
import { shareService } from '../support/shared-service.ts'
import type { TestService } from '../support/test-service.ts'

let service: TestService
let owner: Employer
let stranger: Employer
let contractor: User
let batch: BatchWithPayouts
let record: { id: string }
let webhook: { id: string }
beforeAll(async () => {
  service = await shareService()
  ;[owner, stranger] = await Promise.all([employerNamed(service, 'owner'), employerNamed(service, 'stranger')])
  const sub = pair('a contractor without an organisation').publicKey()
  record = await owner.engage('linked', { address: sub, status: 'invited' })
  contractor = await openUser(service, { kind: 'ledger', sub })
  await contractor.ask('GET', '/payouts')
  await service.db
    .update(contractors)
    .set({ status: 'ready', linkedKind: 'ledger', linkedSub: sub })
    .where(eq(contractors.id, record.id))
  batch = await owner.prepare([await owner.engage('a payee')], { draft: true })
  webhook = (await owner.ask<{ id: string }>('POST', '/webhooks', { url: 'https://1.1.1.1/events' })).body
})
afterAll(() => service.close())

// This service has no relay, so it refuses a run before it looks for the batch: tests/relay/runs covers that.
const addressed = OPERATIONS.filter(
  ({ id, path, caller }) => path.includes('{id}') && 'role' in CALLERS[caller] && id !== 'startRun',
)
const byRole = OPERATIONS.filter(({ caller }) => 'role' in CALLERS[caller])

const cases = (operations: readonly Operation[]) =>
  operations.map((operation) => [`${operation.method} ${operation.path}`, operation] as const)

/** The owner's record that an operation is about. */
function ownersRecord({ path }: Operation): string {
  if (path.startsWith('/batches')) return batch.id
  if (path.startsWith('/webhooks')) return webhook.id
  return path.startsWith('/payouts') ? (batch.payouts[0]?.id ?? '') : record.id
}

const pathFor = ({ path }: Operation, id: string) => path.replace('{id}', encodeURIComponent(id))
const everything = async () => [
  (await owner.ask('GET', `/batches/${batch.id}`)).body,
  (await owner.ask('GET', '/contractors')).body,
  (await owner.ask('GET', '/webhooks')).body,
]

const UNKNOWN = [
  '00000000-0000-4000-8000-000000000000',
  'x',
  "' OR true --",
  'ffffffff-ffff-ffff-ffff-fffffffffffff',
  '%00',
  'a'.repeat(300),
]

describe.each(cases(addressed))('%s', (_, operation) => {
  const body = operation.body?.example
  // Of a stranger's webhook, it does not matter which delivery is named.
  const code = refusalsOf(operation)
    .get(404)
    ?.find((each) => each !== 'delivery-not-found')

  test('responds 404 to another organisation, as for an unknown id, and changes nothing', async () => {
    const before = await everything()
    for (const id of [...UNKNOWN, ownersRecord(operation)]) {
      const { status, body: refusal } = await stranger.ask(operation.method, pathFor(operation, id), body)
      expect([id, status, refusal]).toEqual([id, 404, { error: code?.replaceAll('-', ' '), code }])
    }
    expect(await everything()).toEqual(before)
  })
})

test.each(cases(byRole))(
  'refuses %s to a contractor without an organisation before the body is read',
  async (_, operation) => {
    const id = operation.path.startsWith('/contractors')
      ? '00000000-0000-4000-8000-000000000000'
      : ownersRecord(operation)
    const answer = await contractor.ask(operation.method, pathFor(operation, id), operation.body && '{')
    expect(answer).toMatchObject({ status: 403, body: { error: 'employer role required', code: 'employer-required' } })
  },
)
