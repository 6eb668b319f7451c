import { randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { Keypair } from '@stellar/stellar-sdk'
import { eq, sql } from 'drizzle-orm'
import { SMTPServer } from 'smtp-server'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { idempotencyKeys } from '#drizzle/schema/idempotency.ts'
import { CHANNEL_PROBLEMS, paymentStops, relayChannels, relayJobs } from '#drizzle/schema/relay.ts'
import { webhookDeliveries, webhooks } from '#drizzle/schema/webhooks.ts'
import { CALLERS } from '#lib/api/caller.ts'
import { OPERATIONS } from '#lib/api/interface.ts'
import type { Operation } from '#lib/api/operation.ts'
import { refusalsOf } from '#lib/api/operation-refusals.ts'
import { ingest } from '#lib/archive/ingest.ts'
import { mintSession } from '#lib/auth/session.ts'
import { ConfigurationError } from '#lib/config/environment.ts'
import { MAX_WEBHOOKS } from '#lib/events/webhooks.ts'
import { requireRequestLeft, requireUserRequestLeft } from '#lib/http/request-limit.ts'
import { provideService } from '#lib/server/services.ts'
import { buildMerge, buildTransfer } from '#lib/wallet/calls.ts'
import { formatManifest } from '#lib/wallet/manifest.ts'
import type { Method, Sent } from '../support/api-client.ts'
import { DOCUMENTED } from '../support/documented.ts'
import type { SignedInPayer } from '../support/test-service.ts'
import { as, type FullService, openFullService, TOKENS } from './full-service.ts'

/** Operations that are refused before their body is read. */
const NEVER_READ = new Set(['withdraw', 'disclose'])

const raise = (message: string): never => {
  throw new Error(message)
}

/** A time at which a channel still counts as announced, however long the tests take. */
const FAR = '2999-01-01T00:00:00Z'

const NOBODY = '00000000-0000-4000-8000-000000000000'

let service: FullService
let ada: SignedInPayer
beforeAll(async () => {
  service = await openFullService()
  ada = await service.employ()
})
afterAll(() => service?.close())

/** A channel that can pay from a delegation: without one, runs are refused before the rest of a request is looked at. */
async function addRunChannel(): Promise<void> {
  const channel = { token: service.ledger.network.token, address: 'G', seenAt: new Date(FAR), runs: true }
  await service.db.insert(relayChannels).values(channel)
}

const ask = (method: Method, path: string, sent?: Sent) => service.ask(method, path, sent)
const statusOf = (method: Method, path: string, sent?: Sent) => service.statusOf(method, path, sent)

const exampleOf = (operation: Operation) =>
  operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => operation.parameters?.[name]?.example ?? name)

describe.each(OPERATIONS.map((operation) => [operation.id, operation] as const))('%s', (_, operation) => {
  const method = operation.method
  const path = exampleOf(operation)
  const tokenOf: Record<Operation['caller'], () => string | undefined> = {
    anybody: () => undefined,
    session: () => ada.session,
    user: () => ada.session,
    employer: () => ada.session,
    founder: () => ada.session,
    participant: () => ada.session,
    metrics: () => TOKENS.METRICS_TOKEN,
    scheduler: () => TOKENS.CRON_SECRET,
  }
  const token = () => tokenOf[operation.caller]()

  // Without a channel that can pay from a delegation, a run is refused before its body is read.
  if (operation.id === 'startRun' || operation.id === 'getApproval') {
    beforeAll(addRunChannel)
    afterAll(async () => void (await service.db.delete(relayChannels)))
  }

  if (operation.caller !== 'anybody') {
    test('responds with 401 to a request without valid credentials', async () => {
      expect(await statusOf(method, path)).toBe(401)
      expect(await statusOf(method, path, { session: 'nonsense' })).toBe(401)
    })
  }

  if (CALLERS[operation.caller].scheme === 'session') {
    test('responds with session-expired to an expired session', async () => {
      const hourAgo = new Date(Date.now() - 3_700_000)
      const { sessions } = service.running.settings
      const session = await mintSession(sessions, { kind: 'ledger', sub: ada.address }, hourAgo)
      expect((await ask(method, path, { session })).body).toEqual({
        error: 'session expired',
        code: 'session-expired',
      })
    })
  }

  test('responds with 413 to a body over 256 KiB, if it reads bodies at all', async () => {
    // A GET has no body, only a header with its length.
    const large = 256 * 1024 + 1
    const sent =
      method === 'GET'
        ? { session: token(), headers: { 'Content-Length': String(large) } }
        : { session: token(), body: ' '.repeat(large) }
    expect(await statusOf(method, path, sent)).toBe(NEVER_READ.has(operation.id) ? 501 : 413)
  })

  if (operation.body) {
    test('responds with 400 to a body that is not a JSON object, and with 415 to another media type', async () => {
      expect(await statusOf(method, path, { session: token(), body: '{' })).toBe(400)
      expect(await statusOf(method, path, { session: token(), body: '{}', type: 'text/plain' })).toBe(415)
      for (const body of ['null', '[]', '7', '"text"']) {
        expect(await statusOf(method, path, { session: token(), body })).toBe(400)
      }
    })
  }

  test('responds as documented without a database', async () => {
    await service.withVariables({ DATABASE_URL: 'postgres://postgres:postgres@127.0.0.1:1/nothing' }, async () => {
      await ask(method, path, { session: token(), body: operation.body?.example })
    })
  })
})

test('refuses invalid requests while the database is unreachable', async () => {
  const payee = await service.employ()
  const built = await buildTransfer(service.ledger.network, ada, {
    to: payee.address,
    amount: 0n,
    opening: ada.opening,
  })
  await service.withVariables({ DATABASE_URL: 'postgres://postgres:postgres@127.0.0.1:1/nothing' }, async () => {
    expect(await statusOf('POST', '/transfer', as(ada, { signedXDR: 'nonsense' }))).toBe(400)
    expect(await statusOf('POST', '/transfer', as(payee, { signedXDR: built.signedXdr }))).toBe(403)
    expect(await statusOf('POST', '/transfer', as(ada, { signedXDR: built.signedXdr }))).toBe(500)
    expect(await statusOf('POST', '/auth/sep10/verify', { body: { transaction: 'nonsense' } })).toBe(400)
    expect(await statusOf('POST', '/auth/idp', { body: {} })).toBe(400)
    expect(await statusOf('POST', '/batch', as(ada, { amounts: [0] }))).toBe(400)
    expect(await statusOf('PATCH', '/me', as(ada, { orgName: '' }))).toBe(400)
    expect(await statusOf('POST', '/me/identities', as(ada, { session: 'nonsense' }))).toBe(400)
    expect(await statusOf('GET', '/payouts?cursor=x', as(ada))).toBe(400)
    expect(await statusOf('GET', '/me', as(ada))).toBe(503)
  })
})

test('signs wallets in', async () => {
  const wallet = Keypair.random()
  expect(await statusOf('GET', '/auth/sep10/challenge')).toBe(400)
  for (const query of ['account=nonsense', `account=${wallet.publicKey()}&memo=1`]) {
    expect(await statusOf('GET', `/auth/sep10?${query}`)).toBe(400)
  }
  expect(await statusOf('GET', `/auth/sep10/challenge?account=${wallet.publicKey()}&home_domain=evil.example`)).toBe(
    400,
  )
  const transaction = await service.challengeOf(wallet)
  expect(await statusOf('POST', '/auth/sep10/verify', { body: { transaction } })).toBe(200)
  expect(await statusOf('POST', '/auth/sep10/verify', { body: { transaction } })).toBe(400)
  const form = new URLSearchParams({ transaction: await service.challengeOf(wallet, '/auth/sep10') })
  const type = 'application/x-www-form-urlencoded'
  expect(await statusOf('POST', '/auth/sep10', { body: form.toString(), type })).toBe(200)
  const another = await service.challengeOf(Keypair.random())
  await service.withoutLedger(async () => {
    expect(await statusOf('POST', '/auth/sep10/verify', { body: { transaction: another } })).toBe(503)
    expect(await statusOf('POST', '/auth/sep10', { body: { transaction: another } })).toBe(503)
  })
})

test('signs users of the identity provider in', async () => {
  expect(await statusOf('POST', '/auth/idp', { body: { token: await service.providerToken('ada') } })).toBe(200)
  expect(await statusOf('POST', '/auth/idp', { body: { token: 'nonsense' } })).toBe(401)
  await service.withVariables({ IDP_ISSUER: '', IDP_AUDIENCE: '' }, async () => {
    expect(await statusOf('POST', '/auth/idp', { body: { token: 'x' } })).toBe(501)
  })
  const issuer = `${service.provider.origin}/other`
  service.provider.documents.set('/other/.well-known/openid-configuration', {
    body: { issuer, jwks_uri: `${service.provider.origin}/jwks` },
  })
  await service.withVariables({ IDP_ISSUER: issuer }, async () => {
    const token = await service.providerToken('ada', undefined, issuer)
    expect(await statusOf('POST', '/auth/idp', { body: { token } })).toBe(403)
  })
  await service.withVariables({ IDP_ISSUER: 'http://127.0.0.1:1' }, async () => {
    expect(await statusOf('POST', '/auth/idp', { body: { token: await service.providerToken('ada') } })).toBe(503)
  })
})

test('refuses a transfer that may pay an older payout while payments are stopped, and says when to try again', async () => {
  const [payer, payee] = [await service.employ(), await service.employ()]
  const contractorId = await service.hire(payer, { name: 'Grace', address: payee.address })
  const { body: batch } = await ask('POST', '/batches', as(payer, { name: 'older' }))
  const instructions = [{ contractorId, encryptedAmount: 'a note' }]
  await ask('POST', `/batches/${batch.id}/instructions`, as(payer, { instructions }))
  const { token } = service.ledger.network
  await service.db.insert(paymentStops).values({ token, since: sql`clock_timestamp()` })
  const transfer = { to: payee.address, amount: 1n, opening: payer.opening }
  const { signedXdr: signedXDR } = await buildTransfer(service.ledger.network, payer, transfer)
  const { status, body, headers } = await ask('POST', '/transfer', as(payer, { signedXDR }))
  expect([status, body.code, headers.get('Retry-After')]).toEqual([422, 'reconciling', '30'])
  await service.db.delete(paymentStops)
})

test('sponsors a transfer, and refuses invalid ones', async () => {
  const payee = await service.employ()
  const transfer = { to: payee.address, amount: 1_0000000n, opening: ada.opening }
  const built = await buildTransfer(service.ledger.network, ada, transfer)
  const late = await buildTransfer(service.ledger.network, ada, transfer, { seconds: 1000 })
  const send = (body: object, session = ada.session) => statusOf('POST', '/transfer', { session, body })
  expect(await send({})).toBe(400)
  expect(await send({ signedXDR: 'nonsense' })).toBe(400)
  expect(await send({ signedXDR: built.signedXdr, payoutId: 7 })).toBe(400)
  expect(await send({ signedXDR: built.signedXdr }, payee.session)).toBe(403)
  expect(await send({ signedXDR: late.signedXdr })).toBe(422)
  expect(await send({ signedXDR: built.signedXdr, payoutId: NOBODY })).toBe(422)
  expect(await send({ signedXDR: built.signedXdr }, (await service.signIn('ada')).session)).toBe(501)
  await service.withoutLedger(async () => {
    expect(await send({ signedXDR: built.signedXdr })).toBe(500)
  })
  expect(await send({ signedXDR: built.signedXdr })).toBe(200)
  // The proof is for an outdated balance: the message includes the contract's error.
  const back = { ...transfer, to: ada.address, opening: payee.opening }
  const source = await service.ledger.network.rpc.getAccount(payee.address)
  const first = await buildTransfer(service.ledger.network, payee, back, { source })
  const second = await buildTransfer(service.ledger.network, payee, back, { source })
  expect(await send({ signedXDR: first.signedXdr }, payee.session)).toBe(200)
  const stale = await ask('POST', '/transfer', as(payee, { signedXDR: second.signedXdr }))
  expect([stale.status, stale.body.error]).toEqual([422, expect.stringContaining('would fail: ')])
})

test('sponsors a merge, and refuses invalid calls', async () => {
  const { network } = service.ledger
  const payer = await service.employ()
  const merge = await buildMerge(network, payer.signer)
  const send = (body: object, session = payer.session) => statusOf('POST', '/calls', { session, body })
  expect(await send({})).toBe(400)
  expect(await send({ signedXDR: merge.signedXdr }, ada.session)).toBe(403)
  const transfer = await buildTransfer(network, payer, { to: ada.address, amount: 1n, opening: payer.opening })
  const misplaced = await ask('POST', '/calls', as(payer, { signedXDR: transfer.signedXdr }))
  expect([misplaced.status, misplaced.body.code]).toEqual([422, 'function'])
  expect(await send({ signedXDR: merge.signedXdr }, (await service.signIn('ada')).session)).toBe(501)
  await service.withVariables({ SPONSOR_CALLS: '' }, async () => {
    const refused = await ask('POST', '/calls', as(payer, { signedXDR: merge.signedXdr }))
    expect([refused.status, refused.body.code]).toEqual([501, 'calls-not-sponsored'])
  })
  await service.withoutLedger(async () => {
    expect(await send({ signedXDR: merge.signedXdr })).toBe(500)
  })
  expect(await send({ signedXDR: merge.signedXdr })).toBe(200)
})

test('replaces the seals of payouts that are ready, and runs a batch that has some', async () => {
  const contractorId = await service.hire(ada, { name: 'Ada', address: ada.address })
  const { body: batch } = await ask('POST', '/batches', as(ada, { name: 'sealed' }))
  const path = `/batches/${batch.id}`
  const instructions = [{ contractorId, encryptedAmount: 'a note' }]
  const { body: made } = await ask('POST', `${path}/instructions`, as(ada, { instructions }))
  const [payout] = made.payouts as { id: string }[]
  const seals = [{ payoutId: payout?.id, encryptedAmount: 'another note' }]
  const refused = await ask('POST', `${path}/seals`, as(ada, { seals }))
  expect([refused.status, refused.body.code]).toEqual([409, 'payout-locked'])
  await ask('POST', `${path}/ready`, as(ada))
  const { status, body } = await ask('POST', `${path}/seals`, as(ada, { seals }))
  expect([status, body.payouts]).toMatchObject([200, [{ id: payout?.id, encryptedAmount: 'another note' }]])
  expect((await ask('POST', `${path}/seals`, as(ada, { seals: [...seals, ...seals] }))).body.code).toBe('seals-invalid')
  for (const [id, payoutId, code] of [
    [NOBODY, payout?.id, 'batch-not-found'],
    [batch.id, NOBODY, 'payout-not-found'],
  ]) {
    const unknown = { seals: [{ payoutId, encryptedAmount: 'a note' }] }
    expect((await ask('POST', `/batches/${id}/seals`, as(ada, unknown))).body.code).toBe(code)
  }

  const signature = Buffer.alloc(64).toString('base64')
  const run = (id: unknown) => ask('POST', `/batches/${id}/run`, as(ada, { signature }))
  expect((await run(batch.id)).body.code).toBe('runs-not-wired')
  expect(await statusOf('GET', `/batches/${batch.id}/approval`, as(ada))).toBe(501)
  const { token } = service.ledger.network
  await service.db.insert(relayChannels).values({ token, address: 'G', seenAt: new Date(FAR), runs: true })
  expect((await run(NOBODY)).body.code).toBe('batch-not-found')
  const { body: notReady } = await run(batch.id)
  expect(notReady).toMatchObject({
    code: 'run-not-ready',
    errors: [{ payoutId: payout?.id, reason: 'seal-malformed' }],
  })
  await ask('DELETE', `/payouts/${payout?.id}`, as(ada))
  // Nothing is left to pay.
  expect(await run(batch.id)).toMatchObject({ status: 200, body: { payoutCount: 0 } })
  const approval = (id: unknown, query = '') => statusOf('GET', `/batches/${id}/approval${query}`, as(ada))
  expect([
    await approval(NOBODY),
    await approval(batch.id),
    await approval(batch.id, `?payer=${'G'.repeat(57)}`),
  ]).toEqual([...[404, 409, 400]])
  const { passphrase } = service.ledger.network
  const manifest = { passphrase, token, batch: String(batch.id), account: ada.address, delegations: [], payouts: [] }
  const ended = {
    status: 'completed',
    createdAt: new Date(),
    endedAt: new Date(),
    relayKey: 'k',
    quotaDay: '2026-03-02',
  } as const
  const of = { id: randomUUID(), userKind: 'ledger', userSub: ada.address, batch: String(batch.id) } as const
  await service.db.insert(relayJobs).values({ ...of, ...ended, manifest: formatManifest(manifest), signature })
  expect(await approval(batch.id)).toBe(200)
  await service.db.delete(relayChannels)
})

test('names the channels of running relays that can pay from a delegation', async () => {
  const channelOf = (name: string, state: Partial<typeof relayChannels.$inferInsert>) => ({
    token: service.ledger.network.token,
    address: name,
    seenAt: sql`clock_timestamp()`,
    runs: true,
    ...state,
  })
  const unwired = await ask('GET', '/relay', as(ada))
  expect([unwired.status, unwired.body.code]).toEqual([501, 'runs-not-wired'])
  await service.db
    .insert(relayChannels)
    .values([channelOf('G0', { runs: false }), channelOf('G1', { seenAt: new Date(Date.now() - 70_000) })])
  expect(await statusOf('GET', '/relay', as(ada))).toBe(501)
  await service.db
    .insert(relayChannels)
    .values([
      channelOf('G2', {}),
      channelOf('G3', { paused: true }),
      channelOf('G4', { retired: true }),
      ...CHANNEL_PROBLEMS.map((problem) => channelOf(`G ${problem}`, { problem })),
    ])
  const { status, body } = await ask('GET', '/relay', as(ada))
  expect(status).toBe(200)
  const channels = body.channels as { address: string; available: boolean }[]
  expect(channels).toHaveLength(4 + CHANNEL_PROBLEMS.length)
  expect(channels.filter(({ available }) => available).map(({ address }) => address)).toEqual([
    'G balance',
    'G history',
    'G2',
  ])
  expect(body).toMatchObject({ publicKey: service.running.settings.batch?.key, maxChannels: 5 })
  expect(body.marginLedgers).toBeGreaterThanOrEqual(180)
  await service.withoutLedger(async () => {
    expect(await statusOf('GET', '/relay', as(ada))).toBe(503)
  })
  await service.withVariables({ BATCH_ENABLED: 'false' }, async () => {
    expect(await statusOf('GET', '/relay', as(ada))).toBe(501)
  })
  await service.db.delete(relayChannels)
})

test('manages contractors', async () => {
  const [eve, walt] = [await service.signIn('eve'), await service.signIn('walt')]
  const fields = { name: 'Grace', email: 'grace@example.com', address: ada.address }
  const id = await service.hire(eve, { ...fields, rate: { amount: '10.5', currency: 'USDC' } })
  expect(await statusOf('POST', '/contractors', as(eve, fields))).toBe(409)
  const other = await service.hire(eve, { name: 'Joan', email: 'joan@example.com' })
  const rows = [{ name: 'Mary', amount: 12.5 }, { name: 7 }, fields, null]
  const imported = await ask('POST', '/contractors/bulk', as(eve, { rows }))
  expect(imported.body.errors).toHaveLength(3)
  for (const query of ['', '?limit=1', '?limit=500']) {
    expect(await statusOf('GET', `/contractors${query}`, as(eve))).toBe(200)
  }
  for (const query of ['limit=0', 'limit=many', 'cursor=x']) {
    expect(await statusOf('GET', `/contractors?${query}`, as(eve))).toBe(400)
  }
  expect(await statusOf('GET', `/contractors/${id}`, as(eve))).toBe(200)
  expect(await statusOf('PATCH', `/contractors/${id}`, as(eve, { rate: null, name: 'G. H.' }))).toBe(200)
  expect(await statusOf('PATCH', `/contractors/${id}`, as(eve, { status: 'away' }))).toBe(400)
  expect(await statusOf('PATCH', `/contractors/${other}`, as(eve, { email: fields.email }))).toBe(409)
  for (const [method, path] of [
    ['GET', ''],
    ['PATCH', ''],
    ['DELETE', ''],
    ['POST', '/invite'],
  ] as const) {
    expect(await statusOf(method, `/contractors/${id}${path}`, as(walt))).toBe(404)
  }
  expect(await statusOf('POST', `/contractors/${other}/invite`, as(eve))).toBe(200)
  expect(await statusOf('PATCH', `/contractors/${other}`, as(eve, { status: 'inactive' }))).toBe(200)
  expect(await statusOf('POST', `/contractors/${other}/invite`, as(eve))).toBe(409)
  expect(await statusOf('DELETE', `/contractors/${other}`, as(eve))).toBe(200)
})

test.each([
  ['/contractors', { name: 'Ann' }],
  ['/contractors/bulk', { rows: [{ name: 'Ann' }] }],
  ['/batches', { name: 'March' }],
])('responds with 409 to POST %s if the organisation is dissolved while the body arrives', async (path, body) => {
  const boss = await service.signIn('boss')
  const late = await service.signIn(`late ${path}`)
  expect(await statusOf('PATCH', '/me', as(late, { orgName: 'Late' }))).toBe(200)
  const contractor = await service.hire(boss, { name: 'Late' })
  const { inviteUrl } = (await ask('POST', `/contractors/${contractor}/invite`, as(boss))).body
  const accept = `/invites/${String(inviteUrl).split('/').at(-1)}/accept`
  const meanwhile = async () => expect(await statusOf('POST', accept, as(late))).toBe(200)
  const answer = await ask('POST', path, { ...as(late, body), meanwhile })
  expect([answer.status, answer.body]).toEqual([
    409,
    { error: 'your organisation no longer exists: sign in again', code: 'organisation-dissolved' },
  ])
})

test('mails invites', async () => {
  const poster = await service.signIn('poster')
  const contractor = await service.hire(poster, { name: 'Katherine', email: 'katherine@example.com' })
  /** The server's reply to the recipient: 250 accepts it. */
  let reply = 550
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onRcptTo: (_address, _session, callback) =>
      callback(reply === 250 ? null : Object.assign(new Error('not now'), { responseCode: reply })),
    onData: (stream, _session, callback) => stream.on('end', () => callback()).resume(),
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  const { port } = server.server.address() as AddressInfo
  const mail = { SMTP_URL: `smtp://127.0.0.1:${port}`, MAIL_FROM: 'pay@pay.example', INVITE_LIMIT: '1' }
  await service.withVariables(mail, async () => {
    for (const [next, status] of [
      [550, 422],
      [450, 503],
      [250, 200],
      [250, 429],
    ] as const) {
      reply = next
      expect(await statusOf('POST', `/contractors/${contractor}/invite`, as(poster))).toBe(status)
    }
  })
  await new Promise<void>((resolve) => server.close(() => resolve()))
})

test('refuses employer operations to a contractor', async () => {
  const [boss, stranger] = [await service.signIn('boss'), await service.signIn('stranger')]
  const contractor = await service.hire(boss, { name: 'Dorothy', email: 'dorothy@example.com' })
  const { body } = await ask('POST', `/contractors/${contractor}/invite`, as(boss))
  const accept = `/invites/${String(body.inviteUrl).split('/').at(-1)}/accept`
  const dorothy = await service.signIn('dorothy', 'dorothy@example.com')
  expect((await ask('GET', '/me', as(dorothy))).body.invite).toBeDefined()
  expect(await statusOf('POST', accept, as(boss))).toBe(403)
  expect(await statusOf('POST', accept, as(await service.signIn('eve', 'eve@example.com')))).toBe(403)
  expect(await statusOf('POST', '/invites/nonsense/accept', as(stranger))).toBe(404)
  expect(await statusOf('POST', accept, as(dorothy))).toBe(200)
  expect(await statusOf('POST', accept, as(dorothy))).toBe(409)
  expect((await ask('GET', '/me', as(dorothy))).body.roles).toEqual(['contractor'])
  for (const operation of OPERATIONS.filter(({ caller }) => 'role' in CALLERS[caller])) {
    const sent = as(dorothy, operation.body?.example)
    expect(await statusOf(operation.method, exampleOf(operation), sent)).toBe(403)
  }
  expect(await statusOf('GET', `/contractors/${NOBODY}`, as(dorothy))).toBe(403)
  expect(await statusOf('PATCH', `/contractors/${contractor}`, as(dorothy, { name: 'D.' }))).toBe(403)
  const joined = { session: (await service.signIn('somebody')).session }
  expect(await statusOf('POST', '/me/identities', as(dorothy, joined))).toBe(200)
  expect(await statusOf('DELETE', `/me/identities/idp?sub=${'x'.repeat(256)}`, as(dorothy))).toBe(400)
  expect(await statusOf('DELETE', '/me/identities/idp', as(dorothy))).toBe(200)
  expect(await statusOf('DELETE', '/me/identities/idp', as(dorothy))).toBe(404)
  const wallet = await service.wallet(Keypair.random().publicKey())
  expect(await statusOf('POST', '/me/identities', as(dorothy, { session: wallet }))).toBe(200)
  expect(await statusOf('DELETE', '/me/identities/idp', as(dorothy))).toBe(409)
  expect(await statusOf('POST', '/funding/faucet', as(dorothy))).toBe(409)
})

test('manages batches and payouts', async () => {
  const [eve, walt] = [await service.signIn('eve'), await service.signIn('walt')]
  const payee = await service.employ()
  const contractorId = await service.hire(eve, { name: 'Barbara', address: payee.address })
  const another = await service.hire(eve, { name: 'Frances', address: (await service.employ()).address })
  const id = String((await ask('POST', '/batches', as(eve, { name: 'March' }))).body.id)
  await ask('POST', '/batches', as(eve, { name: 'April' }))
  expect((await ask('GET', '/batches?limit=1', as(eve))).headers.get('link')).toContain('cursor=')
  const instructions = [
    { contractorId, encryptedAmount: 'sealed' },
    { contractorId: another, encryptedAmount: 'sealed' },
    { contractorId, encryptedAmount: 'sealed' },
    { contractorId: NOBODY, encryptedAmount: 'sealed' },
    { contractorId },
  ]
  const instructed = await ask('POST', `/batches/${id}/instructions`, as(eve, { instructions }))
  expect([instructed.body.payouts, instructed.body.errors]).toMatchObject([
    [{ contractorId }, { contractorId: another }],
    [{}, {}, {}],
  ])
  const bad = [[{ encryptedAmount: 'x' }], ['x']]
  for (const rows of bad) {
    expect(await statusOf('POST', `/batches/${id}/instructions`, as(eve, { instructions: rows }))).toBe(400)
  }
  expect(await statusOf('POST', `/batches/${id}/ready`, as(eve))).toBe(200)
  expect(await statusOf('POST', `/batches/${id}/instructions`, as(eve, { instructions }))).toBe(409)
  for (const path of ['', '/status']) {
    expect(await statusOf('GET', `/batches/${id}${path}`, as(eve))).toBe(200)
    expect(await statusOf('GET', `/batches/${id}${path}`, as(walt))).toBe(404)
  }
  for (const path of ['instructions', 'ready']) {
    expect(await statusOf('POST', `/batches/${id}/${path}`, as(walt, { instructions: [] }))).toBe(404)
  }
  for (const query of ['', '?limit=1', `?batchId=${id}&status=ready&from=2026-01-01T00:00:00Z`]) {
    expect(await statusOf('GET', `/payouts${query}`, as(eve))).toBe(200)
  }
  for (const query of ['status=gone', 'from=yesterday', 'to=2026', 'limit=0', 'cursor=x']) {
    expect(await statusOf('GET', `/payouts?${query}`, as(eve))).toBe(400)
  }
  expect(await statusOf('GET', `/batches/${id}?limit=1`, as(eve))).toBe(200)
  expect(await statusOf('GET', '/batches?limit=0', as(eve))).toBe(400)
  expect(await statusOf('GET', `/batches/${id}?limit=0`, as(eve))).toBe(400)
  expect(await statusOf('GET', '/events', as(eve))).toBe(200)
  const begin = { after: 'nonsense', from: 'x', type: 'payout.lost', limit: '0', wait: '26' }
  for (const [name, value] of Object.entries(begin)) {
    const isKnown = name !== 'after'
    expect([name, await statusOf('GET', `/events?${name}=${value}`, as(eve))]).toEqual([name, isKnown ? 400 : 410])
  }
  expect(await statusOf('GET', `/events?after=${'9'.repeat(101)}`, as(eve))).toBe(400)
  const payout = (instructed.body.payouts as { id: string }[])[0]?.id
  expect(await statusOf('DELETE', `/payouts/${payout}`, as(walt))).toBe(404)
  expect(await statusOf('DELETE', `/payouts/${payout}`, as(eve))).toBe(200)
  expect(await statusOf('DELETE', `/payouts/${payout}`, as(eve))).toBe(409)
  expect(await statusOf('DELETE', `/batches/${id}`, as(eve))).toBe(200)
  expect(await statusOf('DELETE', `/batches/${id}`, as(eve))).toBe(404)
})

test('presents the response to a repeated Idempotency-Key again', async () => {
  const boss = await service.signIn('repeating')
  const payee = await service.employ()
  const contractorId = await service.hire(boss, { name: 'Grete', address: payee.address })
  const batch = String((await ask('POST', '/batches', as(boss, { name: 'June' }))).body.id)
  const instructions = [{ contractorId, encryptedAmount: 'sealed', externalId: 'p/1' }]
  const hook = String((await ask('POST', '/webhooks', as(boss, { url: 'https://127.0.0.1.invalid/a' }))).body.id)
  const requests: [path: string, body: object | undefined][] = [
    ['/contractors', { name: 'Hedy', externalId: 'hr/1' }],
    ['/contractors/bulk', { rows: [{ name: 'Emmy', externalId: 'hr/2' }, {}] }],
    [`/contractors/${contractorId}/invite`, undefined],
    ['/batches', { name: 'July', externalId: 'payroll/7' }],
    [`/batches/${batch}/instructions`, { instructions }],
    ['/webhooks', { url: 'https://127.0.0.1.invalid/events' }],
    [`/webhooks/${hook}/secret`, undefined],
  ]
  for (const [path, body] of requests) {
    const send = (key = path) => ask('POST', path, { ...as(boss, body), headers: { 'Idempotency-Key': key } })
    const first = await send()
    const again = await send()
    expect([first.status, again.status, again.body]).toEqual([200, 200, first.body])
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    const until = sql`clock_timestamp() + interval '1 minute'`
    await service.db.update(idempotencyKeys).set({ unfinishedUntil: until })
    expect((await send()).body.code).toBe('idempotency-key-in-use')
    await service.db.update(idempotencyKeys).set({ unfinishedUntil: null, fingerprint: 'of another body' })
    expect((await send()).body.code).toBe('idempotency-key-reused')
    expect((await send('two words')).body.code).toBe('idempotency-key-invalid')
  }
  expect(await statusOf('PATCH', `/contractors/${contractorId}`, as(boss, { externalId: 'hr/1' }))).toBe(409)
})

test.each([
  ['/contractors', { name: 'Ann' }],
  ['/batches', { name: 'March' }],
  ['/webhooks', { url: 'https://127.0.0.1.invalid/events' }],
])('responds with 404 to a repeated POST %s if the record was deleted', async (path, body) => {
  const boss = await service.signIn('deleting')
  const send = () => ask('POST', path, { ...as(boss, body), headers: { 'Idempotency-Key': path } })
  expect(await statusOf('DELETE', `${path}/${String((await send()).body.id)}`, as(boss))).toBe(200)
  expect((await send()).status).toBe(404)
})

test('does not lock a started batch again', async () => {
  const payee = await service.employ()
  const contractorId = await service.hire(ada, { name: 'Katherine', address: payee.address })
  const id = String((await ask('POST', '/batches', as(ada, { name: 'May' }))).body.id)
  const instructions = [{ contractorId, encryptedAmount: 'sealed' }]
  await ask('POST', `/batches/${id}/instructions`, as(ada, { instructions }))
  await ask('POST', `/batches/${id}/ready`, as(ada))
  const employer = await service.employ()
  expect(await statusOf('POST', '/me/identities', as(ada, { session: employer.session }))).toBe(200)
  const transfer = { to: payee.address, amount: 1_0000000n, opening: employer.opening }
  const { signedXdr } = await buildTransfer(service.ledger.network, employer, transfer)
  expect(await statusOf('POST', '/transfer', as(employer, { signedXDR: signedXdr }))).toBe(200)
  expect((await ask('GET', `/batches/${id}`, as(ada))).body.status).toBe('completed')
  expect(await statusOf('POST', `/batches/${id}/ready`, as(ada))).toBe(409)
  expect(await statusOf('DELETE', `/batches/${id}`, as(ada))).toBe(409)
})

test('manages webhooks', async () => {
  const [eve, walt] = [await service.signIn('hooked'), await service.signIn('other')]
  const url = 'https://127.0.0.1.invalid/events'
  const { body: hook } = await ask('POST', '/webhooks', as(eve, { url }))
  for (const bad of [{}, { url: 'http://erp.example' }, { url: 'https://10.0.0.1' }, { url, types: ['x'] }])
    expect(await statusOf('POST', '/webhooks', as(eve, bad))).toBe(400)
  expect(await statusOf('GET', '/webhooks', as(eve))).toBe(200)
  for (const name of ['Grace', 'Ada']) await service.hire(eve, { name })
  const isOfHook = eq(webhookDeliveries.webhook, String(hook.id))
  await expect.poll(() => service.db.$count(webhookDeliveries, isOfHook), { timeout: 10_000 }).toBe(2)
  const { body, headers } = await ask('GET', `/webhooks/${hook.id}/deliveries?limit=1`, as(eve))
  const [delivery] = body.deliveries as { id: string }[]
  expect(await statusOf('GET', `/webhooks/${hook.id}/deliveries?limit=0`, as(eve))).toBe(400)
  expect(headers.get('Link')).toMatch(/rel="next"/)
  const redeliver = `/webhooks/${hook.id}/deliveries/${delivery?.id}/redeliver`
  for (const path of [`/webhooks/${hook.id}/test`, `/webhooks/${hook.id}/secret`, redeliver]) {
    expect(await statusOf('POST', path, as(eve))).toBe(200)
    expect(await statusOf('POST', path, as(walt))).toBe(404)
  }
  expect(await statusOf('GET', `/webhooks/${hook.id}/deliveries`, as(walt))).toBe(404)
  await service.db.update(webhooks).set({ disabledAt: new Date(), disabledReason: 'gone' })
  expect(await statusOf('POST', redeliver, as(eve))).toBe(409)
  for (let count = 1; count < MAX_WEBHOOKS; count += 1)
    expect(await statusOf('POST', '/webhooks', as(eve, { url }))).toBe(200)
  expect(await statusOf('POST', '/webhooks', as(eve, { url }))).toBe(409)
  expect(await statusOf('DELETE', `/webhooks/${hook.id}`, as(walt))).toBe(404)
  expect(await statusOf('DELETE', `/webhooks/${hook.id}`, as(eve))).toBe(200)
})

test('presents and renames the caller', async () => {
  const [eve, busy] = [await service.signIn('eve'), await service.signIn('busy')]
  await service.hire(busy)
  expect(await statusOf('GET', '/me', as(eve))).toBe(200)
  expect(await statusOf('PATCH', '/me', as(eve, { orgName: 'Eve & Co' }))).toBe(200)
  expect(await statusOf('PATCH', '/me', as(eve, {}))).toBe(400)
  expect(await statusOf('POST', '/me/identities', as(eve, { session: 'nonsense' }))).toBe(400)
  expect(await statusOf('POST', '/me/identities', as(eve, { session: busy.session }))).toBe(409)
})

test('responds with 403 to the same sub of another provider', async () => {
  const { sessions } = service.running.settings
  const identity = { kind: 'idp', sub: 'eve', issuer: 'https://other.example' } as const
  const session = await mintSession(sessions, identity, new Date())
  const eve = await service.signIn('eve')
  const bodies: Record<string, unknown> = { joinIdentity: { session: eve.session } }
  await addRunChannel()
  const userOperations = OPERATIONS.filter((operation) => refusalsOf(operation).get(403)?.includes('provider-mismatch'))
  for (const operation of userOperations.filter(({ caller }) => caller !== 'anybody')) {
    const sent = { session, body: bodies[operation.id] ?? operation.body?.example }
    expect(await statusOf(operation.method, exampleOf(operation), sent), operation.id).toBe(403)
  }
  await service.db.delete(relayChannels)
})

test('reads the vault and funds an account', async () => {
  const person = await service.employ()
  expect(await statusOf('GET', '/funding/vault', as(ada))).toBe(200)
  expect(await statusOf('POST', '/funding/faucet', as(person))).toBe(200)
  expect(await statusOf('POST', '/funding/faucet', as(person))).toBe(429)
  expect(await statusOf('POST', '/funding/faucet', as(await service.signIn('eve')))).toBe(409)
  await service.withoutLedger(async () => {
    expect(await statusOf('GET', '/funding/vault', as(ada))).toBe(503)
  })
  await service.withVariables({ CONFIDENTIAL_TOKEN: '' }, async () => {
    expect(await statusOf('GET', '/funding/vault', as(ada))).toBe(501)
    expect(await statusOf('POST', '/funding/faucet', as(ada))).toBe(501)
  })
})

test('runs batch jobs', async () => {
  const client = await service.signIn('client')
  expect(await statusOf('POST', '/batch', as(client, { amounts: [0] }))).toBe(400)
  const { body } = await ask('POST', '/batch', as(client, { amounts: [10_000_000, 1] }))
  const second = await ask('POST', '/batch', as(client))
  expect([second.status, second.body]).toEqual([
    409,
    { error: 'a batch job is already running', code: 'job-running', jobId: body.jobId },
  ])
  expect(await statusOf('GET', `/batch/${body.jobId}`, as(client))).toBe(200)
  expect(await statusOf('GET', `/batch/${body.jobId}`, as(ada))).toBe(404)
  await service.withVariables({ BATCH_ENABLED: 'false' }, async () => {
    expect(await statusOf('POST', '/batch', as(client))).toBe(501)
  })
  expect(await statusOf('GET', '/cron/sweep', { session: TOKENS.CRON_SECRET })).toBe(200)
})

test('serves the archive of the token', async () => {
  const { archive, settings } = service.running
  const [token, other] = [settings.token, 'CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC']
  await ingest(archive ?? raise('there is no archive'))
  expect(await statusOf('GET', '/archive/v1/health')).toBe(200)
  await service.withVariables({ CONFIDENTIAL_TOKEN: '' }, async () => {
    expect(await statusOf('GET', '/archive/v1/health')).toBe(404)
  })
  for (const path of ['events', 'registry', `accounts/${ada.address}/events`, `accounts/${ada.address}/checkpoint`]) {
    const bad = path.endsWith('checkpoint') ? 'at_ledger=0' : 'from_ledger=0'
    expect(await statusOf('GET', `/archive/v1/tokens/${token}/${path}`)).toBe(200)
    expect(await statusOf('GET', `/archive/v1/tokens/${token}/${path}?${bad}`)).toBe(400)
    expect(await statusOf('GET', `/archive/v1/tokens/${other}/${path}`)).toBe(404)
  }
})

test('responds with 501 to withdrawals and disclosures', async () => {
  expect(await statusOf('POST', '/withdraw', as(ada))).toBe(501)
  expect(await statusOf('POST', '/auditor/disclose', as(ada))).toBe(501)
})

test('reports health, readiness and metrics, and runs chores', async () => {
  for (const path of ['/health', '/openapi.json']) expect(await statusOf('GET', path)).toBe(200)
  expect(await statusOf('GET', '/metrics', { session: TOKENS.METRICS_TOKEN })).toBe(200)
  expect(await statusOf('GET', '/ready')).toBe(503)
  await service.withVariables({ METRICS_TOKEN: '', CRON_SECRET: '', BATCH_ENABLED: 'false' }, async () => {
    expect(await statusOf('GET', '/ready')).toBe(200)
    expect(await statusOf('GET', '/metrics', { session: TOKENS.METRICS_TOKEN })).toBe(501)
    expect(await statusOf('GET', '/cron/sweep', { session: TOKENS.CRON_SECRET })).toBe(501)
  })
})

test('responds with 429 to a client over its request limit', async () => {
  const client = '192.0.2.1'
  const later = performance.now() + 3_600_000
  const headers = new Headers({ 'x-client-address': client })
  for (let count = 0; count < 300; count += 1) requireRequestLeft(headers, 'session', later)
  for (let archiveCount = 0; archiveCount < 200; archiveCount += 1) requireRequestLeft(headers, 'archive', later)
  const limited = OPERATIONS.filter(({ refusals }) => refusals?.includes('rate-limited'))
  expect(limited.length).toBeGreaterThan(0)
  for (const { method, path } of limited)
    expect(await statusOf(method, path, { headers: { 'X-Client-Address': client } })).toBe(429)
})

test('responds with 429 to a user over its request limit', async () => {
  const sub = Keypair.random().publicKey()
  const session = await service.wallet(sub)
  const later = performance.now() + 3_600_000
  for (let count = 0; count < 500; count += 1) requireUserRequestLeft(`ledger ${sub}`, later)
  for (const operation of OPERATIONS.filter(({ caller }) => CALLERS[caller].scheme === 'session'))
    expect(await statusOf(operation.method, exampleOf(operation), { session })).toBe(429)
})

test('responds with 500 to every operation if the service failed to start', async () => {
  const failed = Promise.reject(new Error('hunter2'))
  failed.catch(() => undefined)
  provideService(failed)
  for (const operation of OPERATIONS) {
    expect(await statusOf(operation.method, exampleOf(operation))).toBe(500)
  }
  provideService(Promise.resolve(service.running))
})

test('names the missing variables if one kept the service from starting', async () => {
  const failed = Promise.reject(new ConfigurationError('SESSION_SECRET', 'is required on Vercel'))
  failed.catch(() => undefined)
  provideService(failed)
  const error = 'the service is not configured: SESSION_SECRET: is required on Vercel'
  const missing = 'SESSION_SECRET, OPERATOR_PASSWORD, CONFIDENTIAL_TOKEN, SPONSOR_SEED'
  for (const operation of OPERATIONS) {
    const { status, body, headers } = await ask(operation.method, exampleOf(operation))
    if (operation.failure)
      expect([status, body]).toEqual([500, { error: operation.failure, code: 'not-configured', missing }])
    else {
      expect([status, body]).toEqual([503, { error, code: 'not-configured', missing }])
      expect(headers.get('retry-after')).toBe('60')
    }
  }
  provideService(Promise.resolve(service.running))
})

test('responds with 304 to a client that has the current document', async () => {
  const { headers } = await ask('GET', '/openapi.json')
  const etag = headers.get('etag') ?? ''
  expect(await statusOf('GET', '/openapi.json', { headers: { 'If-None-Match': etag } })).toBe(304)
})

test('declares only responses and headers that the tests above received', () => {
  expect(DOCUMENTED.filter((name) => !service.seen.has(name))).toEqual([])
})
