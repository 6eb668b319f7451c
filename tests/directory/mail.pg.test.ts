import type { AddressInfo } from 'node:net'
import { eq } from 'drizzle-orm'
import { SMTPServer } from 'smtp-server'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { auditLog } from '#drizzle/schema/audit.ts'
import { composeInvite } from '#lib/directory/contractors/invite-mail.ts'
import { resendInvite } from '#lib/directory/contractors/invites.ts'
import { sendMail } from '#lib/directory/mail.ts'
import type { Answer } from '../support/api-client.ts'
import { captureLog } from '../support/console.ts'
import { accountOf, atNoon, contextOf, idOf, NOW } from '../support/directory.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

interface Letter {
  from: string
  to: string[]
  raw: string
}

const letters: Letter[] = []
/** The server's response to a recipient that it rejects. */
let refusal: Error | undefined
/** Called for each recipient before the server responds. */
let beforeReply: (() => Promise<unknown>) | undefined
let server: SMTPServer
let service: TestService<'fake'>
let session: string
let employers = 0
let logged: string[]

beforeAll(async () => {
  server = new SMTPServer({
    disabledCommands: ['STARTTLS'],
    onAuth: ({ username, password }, _session, callback) =>
      password === 'hunter2' ? callback(null, { user: username }) : callback(new Error('no')),
    onRcptTo: (_address, _session, callback) =>
      void (beforeReply?.() ?? Promise.resolve()).then(() => callback(refusal)),
    onData: (stream, { envelope }, callback) => {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        letters.push({
          from: envelope.mailFrom ? envelope.mailFrom.address : '',
          to: envelope.rcptTo.map(({ address }) => address),
          raw: Buffer.concat(chunks).toString(),
        })
        callback()
      })
    },
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  const { port } = server.server.address() as AddressInfo
  service = await openTestService(
    atNoon({
      SMTP_URL: `smtp://user:hunter2@127.0.0.1:${port}`,
      MAIL_FROM: 'Payroll <pay@pay.example>',
      INVITE_LIMIT: '3',
    }),
  )
})
afterAll(async () => {
  await service.close()
  await new Promise<void>((resolve) => server.close(() => resolve()))
})
beforeEach(async () => {
  logged = captureLog()
  letters.length = 0
  refusal = undefined
  beforeReply = undefined
  // Each test has a new employer with an unused limit.
  employers += 1
  session = await service.wallet(accountOf(8_000 + employers))
})
afterEach(() => {
  vi.restoreAllMocks()
})

const create = async (body: object) => idOf(await service.ask('POST', '/contractors', { session, body }))
const invite = (id: string) => service.ask('POST', `/contractors/${id}/invite`, { session })

/** The two parts of a letter (multipart/alternative), decoded. */
function partsOf({ raw }: Letter): { head: string; text: string; html: string } {
  const [head = ''] = raw.split('\r\n\r\n', 1)
  const boundary = /boundary="([^"]+)"/.exec(head)?.[1] ?? ''
  const parts = raw.split(`--${boundary}`).slice(1, -1)
  const decode = (type: string) => {
    const part = parts.find((one) => one.includes(`Content-Type: ${type}; charset=utf-8`)) ?? ''
    const body = part.slice(part.indexOf('\r\n\r\n') + 4)
    if (part.includes('base64')) return Buffer.from(body, 'base64').toString()
    const bytes = body
      .replace(/=\r\n/g, '')
      .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    return part.includes('quoted-printable') ? Buffer.from(bytes, 'latin1').toString() : body
  }
  return { head, text: decode('text/plain'), html: decode('text/html') }
}

test('mails the contractor an invite, in text and in HTML, with the link of the response', async () => {
  await service.ask('PATCH', '/me', { session, body: { orgName: 'Acme' } })
  const { status, body } = await invite(await create({ name: 'Ann', email: 'ann@b.example' }))
  expect(status).toBe(200)
  expect(letters).toHaveLength(1)
  const [letter] = letters
  if (!letter) throw new Error('no letter')
  expect([letter.from, letter.to]).toEqual(['pay@pay.example', ['ann@b.example']])
  const { head, text, html } = partsOf(letter)
  expect(head).toMatch(/^From: Payroll <pay@pay\.example>\r$/m)
  expect(head).toMatch(/^To: ann@b\.example\r$/m)
  expect(head).toMatch(/^Subject: Acme invites you to be paid as a contractor\r$/m)
  expect(head).toMatch(/^Content-Type: multipart\/alternative;/m)
  expect(text).toContain('Hello Ann,')
  expect(text).toContain(String(body.inviteUrl))
  expect(html).toContain(`<a href="${body.inviteUrl}">${body.inviteUrl}</a>`)
  expect(logged.join('\n')).not.toContain(String(body.inviteUrl))
})

test('tells a verified email of a wallet that was joined to it, once, and joins it although the mail is refused', async () => {
  const email = 'kim@b.example'
  const user = await service.sessionOf({ kind: 'idp', sub: 'kim', issuer: 'https://login.example', email })
  const join = () => service.ask('POST', '/me/identities', { session: user, body: { session } })
  refusal = new Error('no such box')
  expect((await join()).status).toBe(200)
  expect(letters).toEqual([])
  refusal = undefined
  await service.ask('DELETE', '/me/identities/ledger', { session: user })
  for (let time = 0; time < 2; time += 1) expect((await join()).status).toBe(200)
  expect(letters.map(({ to }) => to)).toEqual([[email]])
  const [letter] = letters
  if (!letter) throw new Error('no letter')
  expect(partsOf(letter).text).toContain(`used with the wallet ${accountOf(8_000 + employers)}`)
})

test('escapes names in HTML, and keeps them out of the headers', async () => {
  const company = '"><script>alert(1)</script> & 株式会社'
  const name = `<img src=x onerror='alert("x")'>`
  await service.ask('PATCH', '/me', { session, body: { orgName: company } })
  await invite(await create({ name, email: 'escape@b.example' }))
  const [letter] = letters
  if (!letter) throw new Error('no letter')
  const { head, text, html } = partsOf(letter)
  expect(text).toContain(`Hello ${name},`)
  expect(text).toContain(company)
  expect(html).not.toMatch(/<script|<img/)
  expect(html).toContain('&lt;img src=x onerror=&#39;alert(&quot;x&quot;)&#39;&gt;')
  expect(html).toContain('&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt; &amp; 株式会社')
  expect(head.match(/^(From|To|Subject|Bcc|Cc):/gm)).toEqual(['From:', 'To:', 'Subject:'])
})

test('adds no header or recipient for a line break in a message', async () => {
  const { mail } = service.running.settings
  if (!mail) throw new Error('no mail')
  const company = 'Acme\r\nBcc: all@b.example\r\n\r\nfree text'
  await sendMail(
    mail,
    composeInvite({ to: 'ann@b.example', name: 'Ann', company, link: 'https://pay.example/invite/x' }),
  )
  expect(letters.map(({ to }) => to)).toEqual([['ann@b.example']])
  expect(letters[0]?.raw.split('\r\n\r\n', 1)[0]).not.toMatch(/^Bcc:/m)
})

test.each([
  ['an encoded word', '=?utf-8?B?WW91ciBiYW5r?='],
  ['part of an encoded word', 'Acme =?utf-8?Q?a'],
  ['a link', 'Sign in at https://evil.example/x'],
  ['a host', 'evil.example'],
  ['a host in another script', 'пример.рф'],
  ['an address', 'boss@evil.example'],
])('omits a name that is %s from the mail', async (_, name) => {
  await service.ask('PATCH', '/me', { session, body: { orgName: name } })
  await invite(await create({ name, email: 'names@b.example' }))
  const [letter] = letters
  if (!letter) throw new Error('no letter')
  const { head, text, html } = partsOf(letter)
  expect(head).toMatch(/^Subject: An organisation invites you to be paid as a contractor\r$/m)
  expect(text).toMatch(/^Hello,\r?$/m)
  for (const part of [head, text, html]) expect(part).not.toContain(name)
})

test('removes directional marks from names', () => {
  const letter = { to: 'ann@b.example', link: 'https://pay.example/invite/x' }
  const message = composeInvite({ ...letter, name: 'A\u2066nn', company: 'Ac\u202eme\u200f Inc. & Co.' })
  expect(message.subject).toBe('Acme Inc. & Co. invites you to be paid as a contractor')
  expect(message.text).toContain('Hello Ann,')
  expect(JSON.stringify(message)).not.toMatch(/\p{Cf}/u)
})

test('treats an address that looks like a list as one address', async () => {
  const { mail } = service.running.settings
  if (!mail) throw new Error('no mail')
  const message = { subject: 's', text: 't', html: 'h' }
  await sendMail(mail, { ...message, to: 'a@b.example, c@d.example' }).catch(() => undefined)
  expect(letters.flatMap(({ to }) => to)).not.toContain('c@d.example')
})

test('sends nothing without an email', async () => {
  expect((await invite(await create({ name: 'Ann' }))).status).toBe(200)
  expect(letters).toEqual([])
})

test.each([
  ['422 if the mail server refuses a recipient for good', 550, 422, 'mail-refused', null],
  ['503 if the mail server wants a message later', 450, 503, 'mail-unavailable', '60'],
])('responds %s, with the link, and succeeds on retry', async (_, reply, status, code, retryAfter) => {
  const id = await create({ name: 'Ann', email: 'refused@b.example' })
  refusal = Object.assign(new Error('<refused@b.example>: not now'), { responseCode: reply })
  const answer = await invite(id)
  expect([answer.status, answer.body]).toEqual([
    status,
    { error: expect.stringContaining('inviteUrl'), code, inviteUrl: expect.stringMatching(/\/invite\/[\w-]+$/) },
  ])
  expect(answer.headers.get('retry-after')).toBe(retryAfter)
  expect(logged.join('\n')).toMatch(new RegExp(`EENVELOPE RCPT TO ${reply}`))
  expect(logged.join('\n')).not.toContain('refused@')
  refusal = undefined
  expect((await invite(id)).status).toBe(200)
  expect(letters.map(({ to }) => to)).toEqual([['refused@b.example']])
})

test('reports an unreachable mail server and a rejected password alike as unavailable', async () => {
  const { mail } = service.running.settings
  if (!mail) throw new Error('no mail')
  const message = { to: 'a@b.example', subject: 's', text: 't', html: 'h' }
  const unavailable = { code: 'mail-unavailable', message: expect.stringContaining('the mail could not be sent') }
  await expect(sendMail({ ...mail, url: 'smtp://127.0.0.1:1' }, message)).rejects.toMatchObject(unavailable)
  const wrong = mail.url.replace('hunter2', 'hunter3')
  await expect(sendMail({ ...mail, url: wrong }, message)).rejects.toMatchObject(unavailable)
  expect(letters).toEqual([])
})

test('limits the invites that an organisation mails per day, but not its links or other organisations', async () => {
  const [first = '', ...others] = await Promise.all(
    Array.from({ length: 6 }, (_, index) => create({ name: 'Ann', email: `ann${index}@b.example` })),
  )
  const unmailed = await create({ name: 'Bob' })
  expect((await invite(first)).status).toBe(200)
  service.clock.now = new Date(NOW.getTime() + 1_800_000)
  const answers = await Promise.all(others.map(invite))
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 429, 429, 429])
  expect(letters).toHaveLength(3)
  const refused = answers.find(({ status }) => status === 429)
  expect(refused?.body).toEqual({
    error: 'at most 3 invites are mailed for an organisation in 24 hours',
    code: 'invite-limit',
  })
  // The first of the three mails is counted until its 24 hours are over.
  expect(refused?.headers.get('retry-after')).toBe(String(86_400 - 1_800))
  expect((await invite(unmailed)).status).toBe(200)
  service.clock.now = new Date(NOW.getTime() + 86_400_000)
  session = await service.wallet(accountOf(8_000 + employers))
  expect((await invite(first)).status).toBe(200)
  expect((await invite(first)).status).toBe(429)
  service.clock.now = NOW
})

test('does not count a failed mail', async () => {
  const id = await create({ name: 'Ann', email: 'bounced@b.example' })
  refusal = new Error('<bounced@b.example>: try later')
  for (let time = 0; time < 5; time += 1) expect((await invite(id)).status).toBe(422)
  refusal = undefined
  for (let time = 0; time < 3; time += 1) expect((await invite(id)).status).toBe(200)
  expect((await invite(id)).status).toBe(429)
  expect(letters).toHaveLength(3)
})

test('keeps the previous link valid if an invite is refused', async () => {
  const id = await create({ name: 'Ann', email: 'again@b.example' })
  let link = ''
  for (let time = 0; time < 3; time += 1) link = String((await invite(id)).body.inviteUrl)
  expect((await invite(id)).status).toBe(429)
  const contractor = await service.user('ann', 'again@b.example')
  const accepted = await service.ask('POST', `/invites/${link.split('/').at(-1)}/accept`, { session: contractor })
  expect(accepted.status).toBe(200)
})

describe('an invite with an Idempotency-Key', () => {
  const inviteOnce = (id: string) =>
    service.ask('POST', `/contractors/${id}/invite`, { session, headers: { 'Idempotency-Key': 'k' } })
  const isReplayed = ({ headers }: Answer) => headers.has('idempotency-replayed')

  test('is mailed once', async () => {
    const id = await create({ name: 'Ann', email: 'ann@b.example' })
    const first = await inviteOnce(id)
    const again = await inviteOnce(id)
    expect([isReplayed(first), isReplayed(again), again.body]).toEqual([false, true, first.body])
    expect(letters).toHaveLength(1)
  })

  test('is refused while the first request is mailing it', async () => {
    const id = await create({ name: 'Ann', email: 'ann@b.example' })
    const answers: Answer[] = []
    beforeReply = async () => answers.push(await inviteOnce(id))
    const first = await inviteOnce(id)
    expect(answers).toMatchObject([{ status: 409, body: { code: 'idempotency-key-in-use' } }])
    expect([first.status, isReplayed(first)]).toEqual([200, false])
    expect(isReplayed(await inviteOnce(id))).toBe(true)
    expect(letters).toHaveLength(1)
  })

  test('is issued and mailed by the next attempt if the mail failed', async () => {
    const id = await create({ name: 'Ann', email: 'ann@b.example' })
    refusal = new Error('try later')
    const failed = await inviteOnce(id)
    refusal = undefined
    const second = await inviteOnce(id)
    expect([failed.status, second.status, isReplayed(second)]).toEqual([422, 200, false])
    expect(second.body.inviteUrl).not.toBe(failed.body.inviteUrl)
    expect(letters).toHaveLength(1)
  })
})

test('resends an invite for an operator, only by mail, and audits who did it and why', async () => {
  const id = await create({ name: 'Ada', email: 'ada@lovelace.example' })
  const silent = await create({ name: 'No email' })
  const first = (await invite(id)).body.inviteUrl
  letters.length = 0
  const context = await contextOf(service)
  const actor = { kind: 'operator', sub: 'Grace' } as const
  const resend = (contractor: string, given: Partial<typeof context> = {}) =>
    resendInvite({ ...context, ...given }, { id: contractor, actor, note: 'it was in the spam folder' })
  expect(await resend(id)).toBe(true)
  expect(letters.map(({ to }) => to)).toEqual([['ada@lovelace.example']])
  expect(letters[0]?.raw).not.toContain(first)
  expect(await resend(silent)).toBe(false)
  expect(await resend(id, { settings: { ...context.settings, mail: undefined } })).toBe(false)
  await expect(resend(crypto.randomUUID())).rejects.toMatchObject({ code: 'contractor-not-found' })
  await expect(resend('no id')).rejects.toMatchObject({ code: 'contractor-not-found' })
  await service.ask('PATCH', `/contractors/${id}`, { session, body: { status: 'inactive' } })
  await expect(resend(id)).rejects.toMatchObject({ code: 'contractor-inactive' })
  expect(letters).toHaveLength(1)
  const entries = await context.db.select().from(auditLog).where(eq(auditLog.actorSub, 'Grace'))
  expect(entries).toMatchObject([
    {
      action: 'contractor.invited',
      actorKind: 'operator',
      subjectId: id,
      detail: { version: 2, mailed: true, note: 'it was in the spam folder' },
    },
  ])
})
