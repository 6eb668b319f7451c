import { eq } from 'drizzle-orm'
import { Client } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contractors, organisations } from '#drizzle/schema/directory.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, openStore, type Store } from '#lib/db/connection.ts'
import { inviteToken } from '#lib/directory/contractors/invite-token.ts'
import type { Answer } from '../support/api-client.ts'
import { atNoon, NOW } from '../support/directory.ts'
import { type Employer, employerNamed } from '../support/fixtures.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

const EMAIL = 'ann@b.example'
let service: TestService<'fake'>
let elsewhere: Store
let watcher: Client
let count = 0
beforeAll(async () => {
  const mail = { SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'pay@pay.example', INVITE_LIMIT: '1' }
  service = await openTestService(atNoon(mail))
  elsewhere = openStore({ url: service.database.url })
  watcher = new Client({ connectionString: service.database.url })
  await watcher.connect()
})
afterAll(async () => {
  await watcher?.end()
  await elsewhere?.close()
  await service?.close()
})

/**
 * The response to a request that arrives while another instance is in the middle of `change`, which it must wait for.
 */
async function during(change: (tx: Database) => Promise<unknown>, request: () => Promise<Answer>): Promise<Answer> {
  let answer: Promise<Answer> | undefined
  await (await elsewhere.database()).transaction(async (tx) => {
    await change(tx)
    let isAnswered = false
    answer = request().finally(() => {
      isAnswered = true
    })
    await expect.poll(async () => isAnswered || (await isAnybodyBlocked())).toBe(true)
  })
  if (!answer) throw new Error('no request was sent')
  return await answer
}

async function isAnybodyBlocked(): Promise<boolean> {
  const { rows } = await watcher.query(
    `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
  )
  return rows.length > 0
}

interface Fixture {
  ada: Employer
  /** one of her contractors, and the path that accepts its invite */
  id: string
  accept: string
}

const lockOrganisation = (tx: Database, { organisation }: Employer) =>
  tx.select().from(organisations).where(eq(organisations.id, organisation)).for('no key update')

test.each<[string, string, (tx: Database, given: Fixture) => Promise<unknown>, (given: Fixture) => Promise<Answer>]>([
  [
    'another user accepts an invite',
    'invite-accepted',
    async (tx, { id }) => {
      const { kind: linkedKind, sub: linkedSub } = (await employerNamed(service, `rival ${count}`)).identity
      const linked = { linkedKind, linkedSub, inviteAcceptedAt: NOW, status: 'onboarding' as const }
      await tx.update(contractors).set(linked).where(eq(contractors.id, id))
    },
    async ({ accept }) => service.ask('POST', accept, { session: await service.user('late', EMAIL) }),
  ],
  [
    'the last invite of the day is mailed',
    'invite-limit',
    async (tx, { ada: { organisation, identity }, ada, id }) => {
      await lockOrganisation(tx, ada)
      const action = 'contractor.invited'
      const detail = { version: 1, mailed: true }
      await recordAudit(tx, NOW, { organisation, actor: identity, action, subject: id, detail })
    },
    async ({ ada, id }) => ada.ask('POST', `/contractors/${id}/invite`),
  ],
  [
    'the last place for a contractor is taken',
    'contractors-full',
    async (tx, { ada }) => {
      await lockOrganisation(tx, ada)
      await tx.update(organisations).set({ contractorCount: 50_000 }).where(eq(organisations.id, ada.organisation))
    },
    async ({ ada }) => ada.ask('POST', '/contractors', { name: 'one more' }),
  ],
])('waits while %s at another instance, and responds %s', async (_, code, change, request) => {
  count += 1
  const ada = await employerNamed(service, `employer ${count}`)
  const { id } = await ada.engage('Ann', {
    status: 'invited',
    address: null,
    inviteVersion: 1,
    email: EMAIL,
    emailFolded: EMAIL,
  })
  const token = inviteToken(service.running.settings.invites.secret, { contractor: id, version: 1 })
  const fixture = { ada, id, accept: `/invites/${token}/accept` }
  const answer = await during(
    (tx) => change(tx, fixture),
    () => request(fixture),
  )
  expect(answer.body.code).toBe(code)
})
