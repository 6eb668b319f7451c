import { randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { eq, sql } from 'drizzle-orm'
import { SMTPServer } from 'smtp-server'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { contractors, identities, payouts } from '#drizzle/schema/directory.ts'
import { mailedPayees, paymentMails } from '#drizzle/schema/mails.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { composePaid, mailPayees, mailToken, readMailToken, stopMails } from '#lib/events/payment-mail.ts'
import { publishEvents } from '#lib/events/publish.ts'
import { accountOf } from '../support/directory.ts'
import { type Employer, employerNamed } from '../support/fixtures.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

const letters: { to: string; text: string }[] = []
/** the code with which the mail server refuses a recipient */
let refusal: number | undefined
let server: SMTPServer
let service: TestService
let ada: Employer
beforeAll(async () => {
  server = new SMTPServer({
    disabledCommands: ['STARTTLS', 'AUTH'],
    onRcptTo: (_address, _session, callback) =>
      callback(refusal === undefined ? undefined : Object.assign(new Error('not now'), { responseCode: refusal })),
    onData: (stream, { envelope }, callback) => {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const text = Buffer.concat(chunks).toString().replaceAll('=\r\n', '').replaceAll('=3D', '=')
        letters.push({ to: envelope.rcptTo[0]?.address ?? '', text: text.replaceAll('\r\n ', ' ') })
        callback()
      })
    },
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  const { port } = server.server.address() as AddressInfo
  service = await openTestService({
    variables: { SMTP_URL: `smtp://127.0.0.1:${port}`, MAIL_FROM: 'Payroll <pay@pay.example>' },
  })
  ada = await employerNamed(service, 'ada')
  await ada.ask('PATCH', '/me', { orgName: 'Acme', notifyPayees: true })
  // What was paid before the first round is no news.
  const { contractor } = await hire(ada, 'old@mail.example')
  await pay(ada, contractor)
  expect(await mail()).toBe(0)
})
afterAll(async () => {
  await service.close()
  await new Promise<void>((resolve) => server.close(() => resolve()))
})
beforeEach(() => {
  letters.length = 0
  refusal = undefined
})

/** A contractor of an employer who has accepted as a user with a verified email; `email` null: with a wallet. */
async function hire(employer: Employer, email: string | null): Promise<{ contractor: string; person: string }> {
  const { id, address } = await employer.engage(randomUUID())
  const sub = email === null ? address : randomUUID()
  const session = email === null ? await service.wallet(address) : await service.user(sub, email)
  await service.ask('GET', '/me', { session })
  const kind = email === null ? ('ledger' as const) : ('idp' as const)
  await service.db.update(contractors).set({ linkedKind: kind, linkedSub: sub }).where(eq(contractors.id, id))
  const [identity] = await service.db.select().from(identities).where(eq(identities.sub, sub))
  return { contractor: id, person: identity?.organisation ?? '' }
}

/** The payout is paid, as the settlement of a transfer records it. */
async function pay(employer: Employer, contractor: string): Promise<void> {
  const { payouts: made } = await employer.prepare([{ id: contractor }])
  const id = made[0]?.id ?? ''
  await service.db
    .update(payouts)
    .set({ status: 'paid', txHash: 'ab'.repeat(32), paidAt: new Date() })
    .where(eq(payouts.id, id))
  const actor = { kind: 'service', sub: 'settlement' } as const
  await recordAudit(service.db, new Date(), {
    organisation: employer.organisation,
    actor,
    action: 'payout.paid',
    subject: id,
  })
  while ((await publishEvents(service.db)) > 0);
}

async function mail(): Promise<number> {
  const { settings } = service.running
  if (!settings.mail) throw new Error('no mail')
  return await mailPayees({ db: service.db, mail: settings.mail, ...settings.paymentMails })
}

const anHourLater = (person: string) =>
  service.db
    .update(mailedPayees)
    .set({ mailedAt: sql`clock_timestamp() - interval '61 minutes'` })
    .where(eq(mailedPayees.person, person))

test('mails a contractor with a verified email who paid it, and no amount', async () => {
  const { contractor } = await hire(ada, 'grace@mail.example')
  await pay(ada, contractor)
  expect(await mail()).toBe(1)
  expect(letters.map(({ to }) => to)).toEqual(['grace@mail.example'])
  const text = letters[0]?.text ?? ''
  expect(text).toContain('Subject: You were paid by Acme')
  expect(text).toMatch(/List-Unsubscribe: <http:\/\/localhost:3000\/mail\/\S+\/stop>/)
  expect(text).toContain('List-Unsubscribe-Post: List-Unsubscribe=One-Click')
  expect(text).not.toMatch(/\d+\.\d{2}|USDC|sealed/)
  expect(await mail()).toBe(0)
})

test('sends one mail an hour, which names every payer since the last one', async () => {
  const eve = await employerNamed(service, 'eve')
  await eve.ask('PATCH', '/me', { orgName: 'Eve & Co', notifyPayees: true })
  const { contractor, person } = await hire(ada, 'lin@mail.example')
  await pay(ada, contractor)
  expect(await mail()).toBe(1)
  const other = await hire(eve, 'lin@mail.example')
  await service.db.update(identities).set({ organisation: person }).where(eq(identities.organisation, other.person))
  await pay(ada, contractor)
  await pay(ada, contractor)
  await pay(eve, other.contractor)
  expect(await mail()).toBe(0)
  await anHourLater(person)
  expect(await mail()).toBe(1)
  expect(letters.at(-1)?.text).toContain('Acme and Eve & Co')
  await anHourLater(person)
  expect(await mail()).toBe(0)
})

test('mails no contractor whose employer has not switched it on, or who has no verified email', async () => {
  const max = await employerNamed(service, 'max')
  const { contractor: unwanted } = await hire(max, 'kim@mail.example')
  await pay(max, unwanted)
  const { contractor: unknown } = await hire(ada, null)
  await pay(ada, unknown)
  expect(await mail()).toBe(0)
  expect(letters).toEqual([])
  expect(await service.db.$count(paymentMails)).toBe(0)
})

test('tries again after an hour if the mail server is down', async () => {
  const { contractor, person } = await hire(ada, 'ivo@mail.example')
  await pay(ada, contractor)
  refusal = 451
  expect(await mail()).toBe(0)
  refusal = undefined
  expect(await mail()).toBe(0)
  await anHourLater(person)
  expect(await mail()).toBe(1)
})

test('gives up on an address that the mail server refuses', async () => {
  const { contractor, person } = await hire(ada, 'abe@mail.example')
  await pay(ada, contractor)
  refusal = 550
  expect(await mail()).toBe(0)
  refusal = undefined
  await anHourLater(person)
  expect(await mail()).toBe(0)
  expect(await service.db.$count(paymentMails, eq(paymentMails.person, person))).toBe(0)
})

test('sends no mail to a person who has unsubscribed and then joins or separates identities', async () => {
  const session = await service.user('auth0|pia', 'pia@mail.example')
  const wallet = await service.wallet(accountOf(61_000))
  const personOf = async () => {
    const [identity] = await service.db.select().from(identities).where(eq(identities.sub, 'auth0|pia'))
    return identity?.organisation ?? ''
  }
  await service.ask('GET', '/me', { session })
  await service.ask('GET', '/me', { session: wallet })
  await stopMails(service.db, await personOf())
  const isMuted = async () => {
    const [row] = await service.db
      .select()
      .from(mailedPayees)
      .where(eq(mailedPayees.person, await personOf()))
    return row?.isMuted
  }
  // The wallet's organisation is founded, so the person gets its id.
  const before = await personOf()
  await service.ask('PATCH', '/me', { session: wallet, body: { orgName: 'Pia & Co' } })
  await service.ask('POST', '/me/identities', { session: wallet, body: { session } })
  expect(await personOf()).not.toBe(before)
  expect(await isMuted()).toBe(true)
  await service.ask('DELETE', '/me/identities/idp', { session: wallet })
  expect(await isMuted()).toBe(true)
})

test('sends one mail if several processes try at once', async () => {
  const { contractor } = await hire(ada, 'zoe@mail.example')
  await pay(ada, contractor)
  const sent = await Promise.all(Array.from({ length: 5 }, () => mail()))
  expect(sent.reduce((sum, count) => sum + count)).toBe(1)
  expect(letters).toHaveLength(1)
})

test('stops with one POST, also what is queued, and with no other token', async () => {
  const { POST, GET } = await import('#app/mail/[token]/stop/route.ts')
  const { secret } = service.running.settings.paymentMails
  const { contractor, person } = await hire(ada, 'uma@mail.example')
  await pay(ada, contractor)
  const token = mailToken(secret, person)
  const request = (method: string, value: string) =>
    [
      new Request(`http://localhost:3000/mail/${value}/stop`, { method }),
      { params: Promise.resolve({ token: value }) },
    ] as const
  // A mail program that opens the link changes nothing.
  expect((await GET(...request('GET', token))).headers.get('location')).toBe(`/mail/${token}`)
  const forged = `${randomUUID()}.${token.split('.')[1]}`
  expect((await POST(...request('POST', forged))).status).toBe(404)
  const oneClick = new URLSearchParams({ 'List-Unsubscribe': 'One-Click' })
  const params = Promise.resolve({ token })
  const address = `http://localhost:3000/mail/${token}/stop`
  expect((await POST(new Request(address, { method: 'POST', body: oneClick }), { params })).status).toBe(204)
  const form = new URLSearchParams({ page: '1' })
  const stopped = await POST(new Request(address, { method: 'POST', body: form }), { params })
  expect([stopped.status, stopped.headers.get('location')]).toEqual([303, `/mail/${token}?stopped=1`])
  expect(await mail()).toBe(0)
  await pay(ada, contractor)
  expect(await mail()).toBe(0)
  expect(readMailToken(secret, `${token}x`)).toBeUndefined()
})

test('switches it on and off for an organisation, beside its name', async () => {
  const ida = await employerNamed(service, 'ida')
  const on = await ida.ask<{ employer: object }>('PATCH', '/me', { notifyPayees: true })
  expect(on.body.employer).toMatchObject({ notifyPayees: true })
  const off = await ida.ask<{ employer: object }>('PATCH', '/me', { notifyPayees: false })
  expect(off.body.employer).not.toHaveProperty('notifyPayees')
  expect(await ida.ask('PATCH', '/me', { notifyPayees: 'yes' })).toMatchObject({ status: 400 })
})

test('composes names that a mail program cannot take for a link', () => {
  const payers = ['pay.evil.example', undefined, '<b>Acme</b>', 'B', 'C', 'D', 'E']
  const { subject, html, unsubscribe } = composePaid({
    to: 'a@b.example',
    payers,
    unsubscribe: 'https://x.example/mail/t',
  })
  expect(subject).toBe('You were paid by an organisation, an organisation, <b>Acme</b>, B, C, and 2 more')
  expect(html).toContain('&lt;b&gt;Acme&lt;/b&gt;')
  expect(unsubscribe).toBe('https://x.example/mail/t/stop')
})
