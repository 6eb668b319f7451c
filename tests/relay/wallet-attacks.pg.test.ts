import { eq, inArray } from 'drizzle-orm'
import { expect, test } from 'vitest'
import { payouts } from '#drizzle/schema/directory.ts'
import { relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import { sendAndWait } from '#lib/cli/client/participants.ts'
import { publicHalf } from '#lib/config/relay-key.ts'
import { readRecentEvents } from '#lib/disclosure/ledger-event.ts'
import { type NoteStore, openNotes } from '#lib/sdk/own-notes.ts'
import { requireUnpaid } from '#lib/sdk/paid-payouts.ts'
import { readBatch } from '#lib/sdk/payees.ts'
import { runBatch } from '#lib/sdk/run.ts'
import { manifestOf } from '#lib/sdk/run-manifest.ts'
import type { RunRequest } from '#lib/sdk/run-request.ts'
import { sponsorCall } from '#lib/sdk/sponsored-call.ts'
import type { TokenArchive } from '#lib/wallet/archive.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { buildTransfer } from '#lib/wallet/calls.ts'
import { ensureEscrow, readOwnDelegations, readPastDelegations } from '#lib/wallet/escrow.ts'
import { accountFilters } from '#lib/wallet/events.ts'
import {
  AMOUNTS,
  call,
  callsOf,
  type Payroll,
  payees,
  prepare,
  receivedBy,
  requestOf,
  serveWalletRuns,
  service,
} from './wallet-runs.ts'

// What an employer's client does if the service, or an attacker who holds its database, lies to it.

serveWalletRuns()

type Body = Record<string, unknown>

/** The service, with the bodies of responses to matching requests changed. */
const lying =
  (isMeant: (request: Request) => boolean, change: (body: Body, request: Request) => Body) =>
  async (request: Request): Promise<Response> => {
    const response = await call(request)
    if (!response.ok || !isMeant(request)) return response
    return Response.json(change((await response.json()) as Body, request), {
      headers: { link: response.headers.get('link') ?? '' },
    })
  }

const isBatch = ({ method, url }: Request) => method === 'GET' && /\/batches\/[\w-]+(\?.*)?$/.test(url)
const isStatus = ({ url }: Request) => url.endsWith('/status')

/** Erases from the database what a batch has paid. */
async function erasePayments(batch: string): Promise<void> {
  const { db } = service
  const own = await db.select({ id: payouts.id }).from(payouts).where(eq(payouts.batch, batch))
  const ids = own.map(({ id }) => id)
  await db
    .update(transfers)
    .set({ payout: null, lineJob: null, linePosition: null })
    .where(inArray(transfers.payout, ids))
  await db.delete(relayLines).where(inArray(relayLines.payout, ids))
  await db.delete(relayJobs).where(eq(relayJobs.batch, batch))
  await db
    .update(payouts)
    .set({ status: 'ready', txHash: null, paidAt: null, encryptedAmount: 'erased' })
    .where(inArray(payouts.id, ids))
}

const paidSince = async (before: readonly bigint[]) =>
  (await receivedBy()).map((received, index) => received - (before[index] ?? 0n))

let settled: Promise<Payroll> | undefined

/** A payroll whose batch is paid, for the tests that change nothing of it. */
function paidPayroll(): Promise<Payroll> {
  settled ??= prepare().then(async (payroll) => {
    expect(await runBatch(await requestOf(payroll))).toEqual({ paid: 3, payouts: 3 })
    return payroll
  })
  return settled
}

/** A batch as the service shows it, and the id of a new draft of the same employer. */
async function nextOf({ batch, employer: { session } }: Payroll): Promise<{ paid: Body; batch: string }> {
  const { body: paid } = await service.ask('GET', `/batches/${batch}`, { session })
  const { body } = await service.ask('POST', '/batches', { session, body: { name: 'the next' } })
  return { paid, batch: String(body.id) }
}

/** A batch without payouts counts as finished. */
async function addPayout({ contractors, employer: { session } }: Payroll, batch: string): Promise<void> {
  const instructions = [{ contractorId: contractors[0], encryptedAmount: 'a note' }]
  await service.ask('POST', `/batches/${batch}/instructions`, { session, body: { instructions } })
}

/** The paid payouts as others that are to be paid. */
const renamed = (body: Body): Body => ({
  ...body,
  status: 'ready',
  payouts: (body.payouts as Body[]).map(({ txHash: _, ...payout }) => ({
    ...payout,
    id: crypto.randomUUID(),
    status: 'ready',
  })),
})

/** The paid payouts as they were before. */
const unpaid = (body: Body): Body => ({
  ...body,
  status: 'ready',
  payouts: (body.payouts as Body[]).map(({ txHash: _, ...payout }) => ({ ...payout, status: 'ready' })),
})

const NOTHING = [0n, 0n, 0n]

function emptyStore(lines: string[] = []): NoteStore {
  return { read: () => lines, append: (added) => void lines.push(...added) }
}

const delegationsOf = async ({ employer }: Payroll) =>
  [...(await readPastDelegations(service.ledger.network, employer)).values()].flat().length

test.each(['with its notes', 'without its notes'])('pays nothing again whose record was erased, %s', async (which) => {
  const payroll = await prepare()
  const before = await receivedBy()
  expect(await runBatch(await requestOf(payroll))).toEqual({ paid: 3, payouts: 3 })
  await erasePayments(payroll.batch)
  const file = which === 'with its notes' ? payroll.file : `${payroll.file}.new`
  expect(await runBatch(await requestOf({ ...payroll, file }))).toEqual({ paid: 3, payouts: 3 })
  expect(await paidSince(before)).toEqual(AMOUNTS)
  expect(await delegationsOf(payroll)).toBe(2)
})

test('signs nothing for a payout that was replaced by another one', async () => {
  const payroll = await paidPayroll()
  const before = await receivedBy()
  const replaced = lying(isBatch, renamed)
  await expect(requestOf(payroll, replaced).then(runBatch)).rejects.toMatchObject({ code: 'list-differs' })
  // Also if the employer says that the batch is unpaid: the notes know better.
  const request = { ...(await requestOf(payroll, replaced)), assumesUnpaid: true }
  await expect(runBatch(request)).rejects.toMatchObject({ code: 'list-differs' })
  // Without notes, the ledger shows payments to the payees, and nothing says what for.
  const forgotten = { ...payroll, file: `${payroll.file}.replaced` }
  await expect(requestOf(forgotten, replaced).then(runBatch)).rejects.toMatchObject({ code: 'payment-unknown' })
  expect([await paidSince(before), await delegationsOf(payroll)]).toEqual([NOTHING, 2])
})

test('accepts a paid payout of a contractor whom the list lacks', async () => {
  const request = await requestOf(await paidPayroll())
  expect(await runBatch({ ...request, payees: request.payees.slice(1) })).toEqual({ paid: 2, payouts: 2 })
})

test('counts no payment of another batch for a payout that has its id', async () => {
  const payroll = await paidPayroll()
  const { paid, batch } = await nextOf(payroll)
  const next = { ...payroll, batch }
  const reused = lying(isBatch, (given) => ({ ...given, status: 'started', payouts: paid.payouts }))
  await expect(requestOf(next, reused).then(runBatch)).rejects.toMatchObject({ code: 'list-differs' })
})

test('calls no payout paid for an older payment with its id, although its notes are lost', async () => {
  const payroll = await paidPayroll()
  const { paid, batch } = await nextOf(payroll)
  const next = { ...payroll, batch, file: `${payroll.file}.reused` }
  // A draft without payouts, which then have the ids of earlier ones, and are called paid.
  let isAdded = false
  const reusing = async (request: Request): Promise<Response> => {
    if (request.method === 'POST' && /(instructions|ready|run)$/.test(request.url)) {
      isAdded = true
      return Response.json({
        payouts: [],
        errors: [],
        status: 'completed',
        settledCount: 3,
        failedCount: 0,
        payoutCount: 3,
      })
    }
    const run = { status: 'completed' }
    if (isAdded && isStatus(request)) return Response.json({ ...paid, run })
    return await lying(isBatch, (given) => (isAdded ? { ...paid, id: given.id, run } : given))(request)
  }
  const request = { ...(await requestOf(next, reusing)), assumesUnpaid: true, seenMs: 500 }
  await expect(runBatch(request)).rejects.toMatchObject({
    code: 'list-differs',
    message: expect.stringContaining('is not new'),
  })
})

test('asks about a payment to a payee without a known purpose, and remembers the answer', async () => {
  const payroll = await prepare()
  const { network } = service.ledger
  const { employer } = payroll
  const [payee] = payees
  const bonus = { to: payee?.address ?? '', amount: 7n, opening: employer.opening }
  const request = await requestOf(payroll)
  const { signedXdr } = await buildTransfer(network, employer, bonus)
  await service.ask('POST', '/transfer', { session: employer.session, body: { signedXDR: signedXdr } })
  await expect(runBatch(request)).rejects.toMatchObject({
    code: 'payment-unknown',
    message: expect.stringContaining(bonus.to),
  })
  expect(await delegationsOf(payroll)).toBe(0)
  const before = await receivedBy()
  expect(await runBatch({ ...request, assumesUnpaid: true })).toEqual({ paid: 3, payouts: 3 })
  expect(await runBatch(request)).toEqual({ paid: 3, payouts: 3 })
  expect(await paidSince(before)).toEqual(AMOUNTS)
})

test('signs nothing that the service shows only after it was checked', async () => {
  const payroll = await paidPayroll()
  const before = await receivedBy()
  // Honest at first: then the paid payouts have new ids, and are to be paid.
  let readings = 0
  const changing = lying(isBatch, (body) => {
    readings += 1
    return readings <= 2 ? body : renamed(body)
  })
  await expect(requestOf(payroll, changing).then(runBatch)).rejects.toMatchObject({ code: 'list-differs' })
  expect([await paidSince(before), await delegationsOf(payroll)]).toEqual([NOTHING, 2])
})

test('pays a payee once who has two payouts', async () => {
  const payroll = await prepare()
  const doubled = lying(isBatch, (body) => {
    const given = body.payouts as Body[]
    return { ...body, payouts: [...given, ...given.map((payout) => ({ ...payout, id: crypto.randomUUID() }))] }
  })
  await expect(requestOf(payroll, doubled).then(runBatch)).rejects.toMatchObject({
    code: 'list-differs',
    message: expect.stringContaining('two payouts'),
  })
  expect(await delegationsOf(payroll)).toBe(0)
})

test.each([
  ['no payouts', () => [], 'not-started'],
  ['canceled payouts', (payouts: Body[]) => payouts.map((one) => ({ ...one, status: 'canceled' })), undefined],
] as const)(
  'reads from the ledger what is paid of its list, although the service shows %s in the end',
  async (_, change, code) => {
    const payroll = await prepare()
    let isEnded = false
    const show = (body: Body) => (isEnded ? { ...body, payouts: change(body.payouts as Body[]) } : body)
    const hiding = async (request: Request): Promise<Response> => {
      const response = await lying(isBatch, show)(request)
      if (isStatus(request) && response.ok) {
        const { run } = (await response.clone().json()) as { run?: { status: string } }
        isEnded = run?.status === 'completed'
      }
      return response
    }
    const result = await requestOf(payroll, hiding)
      .then(runBatch)
      .catch((error: unknown) => error)
    expect(result).toMatchObject(code === undefined ? { paid: 3, payouts: 3 } : { code })
  },
)

test('calls nothing paid that the ledger does not show', async () => {
  const payroll = await prepare()
  const before = await receivedBy()
  let isStarted = false
  const idle = async (request: Request): Promise<Response> => {
    if (request.method === 'POST' && request.url.endsWith('/run')) {
      isStarted = true
      return Response.json({
        status: 'started',
        settledCount: 0,
        failedCount: 0,
        payoutCount: 3,
        run: { status: 'running' },
      })
    }
    const claim = (body: Body): Body => {
      if (!isStarted) return body
      const claimed = (body.payouts as Body[] | undefined)?.map((payout) => ({
        ...payout,
        status: 'paid',
        txHash: 'ab'.repeat(32),
      }))
      return {
        ...body,
        status: 'completed',
        settledCount: 3,
        run: { status: 'completed' },
        ...(claimed && { payouts: claimed }),
      }
    }
    return await lying((one) => isBatch(one) || isStatus(one), claim)(request)
  }
  await expect(runBatch({ ...(await requestOf(payroll, idle)), seenMs: 500 })).rejects.toMatchObject({
    code: 'not-on-ledger',
    message: expect.stringContaining('ab'.repeat(32)),
  })
  expect(await paidSince(before)).toEqual([0n, 0n, 0n])
})

/** Prepares a run up to its signature. */
async function prepareRun(payroll: Payroll, changes: Partial<RunRequest> = {}): Promise<RunRequest> {
  const cut = async (request: Request) => {
    if (request.method === 'POST' && request.url.endsWith('/run')) throw new Error('interrupted')
    return await call(request)
  }
  await expect(requestOf(payroll, cut, changes).then(runBatch)).rejects.toThrow('interrupted')
  return await requestOf(payroll, call, changes)
}

test('repeats a run of which it has canceled a payout that the ledger shows as paid', async () => {
  const payroll = await prepare()
  const request = await prepareRun(payroll)
  const before = await receivedBy()
  const { payouts: own } = await readBatch(request.client, payroll.batch)
  const [payee] = request.payees
  const paid = own.find(({ contractorId }) => contractorId === payee?.contractor)
  // A payment that the service does not know.
  const { network } = service.ledger
  const { spendable: opening } = await syncBalance(network, payroll.employer)
  const payment = { to: payee?.address ?? '', amount: payee?.amount ?? 0n, opening, purpose: paid?.id ?? '' }
  await sendAndWait(network, (await buildTransfer(network, payroll.employer, payment)).signedXdr)
  expect(await runBatch(request)).toEqual({ paid: 3, payouts: 3 })
  expect(await runBatch(request)).toEqual({ paid: 3, payouts: 3 })
  expect(await paidSince(before)).toEqual(AMOUNTS)
})

test('delegates nothing to a second channel while an escrow of the batch is left', async () => {
  const payroll = await prepare()
  let isAsked = false
  const ever = await nextOf(payroll)
  const isUsed = ({ address }: Body) => request.notes.delegations().some(({ channel }) => channel === address)
  const dividing = async (request: Request): Promise<Response> => {
    if (request.method === 'POST' && request.url.endsWith('/run')) {
      isAsked = true
      return Response.json({ error: 'not ready', code: 'run-not-ready', errors: [] }, { status: 409 })
    }
    const url = new URL(request.url)
    if (isAsked && url.pathname.endsWith(`/${ever.batch}/status`)) {
      const progress = { status: 'started', settledCount: 0, failedCount: 0, payoutCount: 1 }
      return Response.json({ ...progress, run: { status: 'running' } })
    }
    const hide = (body: Body) => ({
      ...body,
      ...(isAsked && url.pathname.endsWith('/batches') && { batches: [{ id: ever.batch }] }),
      ...(isAsked &&
        url.pathname.endsWith('/relay') && {
          channels: (body.channels as Body[]).map((one) => (isUsed(one) ? { ...one, available: false } : one)),
        }),
    })
    return await lying(({ url }) => /\/(relay|batches)(\?.*)?$/.test(url), hide)(request)
  }
  const request = await requestOf(payroll, dividing, { channels: 1 })
  await expect(runBatch(request)).rejects.toMatchObject({ code: 'channel-busy' })
  expect(await delegationsOf(payroll)).toBe(1)
})

test('signs no transfer for a payout that the ledger shows as paid, or in place of one', async () => {
  const payroll = await paidPayroll()
  const request = await requestOf(payroll)
  const [payout] = (await readBatch(request.client, payroll.batch)).payouts
  if (!payout) throw new Error('nothing is paid')
  const one = { ...request, payees: request.payees.filter(({ contractor }) => contractor === payout.contractorId) }
  const erased = { ...payout, status: 'ready' as const }
  await expect(requireUnpaid(one, erased)).rejects.toMatchObject({ code: 'already-paid' })
  const unnoted = { ...one, notes: openNotes(payroll.employer, emptyStore()) }
  await expect(requireUnpaid(unnoted, erased)).rejects.toMatchObject({ code: 'already-paid' })
  const replaced = { ...erased, id: crypto.randomUUID() }
  await expect(requireUnpaid(one, replaced)).rejects.toMatchObject({ code: 'list-differs' })
})

test('pays no payee again whose payment is noted, although the ledger forgets it and the employer assumes otherwise', async () => {
  const payroll = await paidPayroll()
  const before = await receivedBy()
  const request = await requestOf(payroll, lying(isBatch, renamed))
  const deployment = { ...service.ledger.network, rpc: await forgetfulRpc() }
  await expect(runBatch({ ...request, deployment, assumesUnpaid: true })).rejects.toMatchObject({
    code: 'list-differs',
    message: expect.stringContaining('has paid'),
  })
  expect([await paidSince(before), await delegationsOf(payroll)]).toEqual([NOTHING, 2])
})

test('says that a payout was paid with another amount', async () => {
  const payroll = await paidPayroll()
  const request = await requestOf(payroll, lying(isBatch, unpaid))
  const payees = request.payees.map((payee) => ({ ...payee, amount: payee.amount + 1n }))
  const corrected = { ...request, payees, notes: openNotes(payroll.employer, emptyStore()), assumesUnpaid: true }
  await expect(runBatch(corrected)).rejects.toMatchObject({
    code: 'list-differs',
    message: expect.stringContaining('with another amount'),
  })
  expect(await delegationsOf(payroll)).toBe(2)
})

test.each([{ ledgersPerPayout: 1_000_000 }, { marginLedgers: 1_000_000 }, { latestLedger: 50_000_000 }])(
  'delegates nothing on the terms %o',
  async (terms) => {
    const payroll = await prepare()
    const absurd = lying(
      ({ url }) => url.endsWith('/relay'),
      (body) => ({ ...body, ...terms }),
    )
    await expect(requestOf(payroll, absurd).then(runBatch)).rejects.toMatchObject({ code: 'terms-absurd' })
    expect(await delegationsOf(payroll)).toBe(0)
  },
)

test('revokes nothing that another unfinished batch is to be paid from', async () => {
  const payroll = await prepare()
  const { employer } = payroll
  const { network } = service.ledger
  const request = await requestOf(payroll)
  expect(await runBatch(request)).toEqual({ paid: 3, payouts: 3 })
  // The next batch has its delegation to the same channel, and no run yet.
  const { batch } = await nextOf(payroll)
  await addPayout(payroll, batch)
  const spender = service.channels[0]?.publicKey() ?? ''
  const steps = {
    submit: (signedXdr: string) => sponsorCall(request.client, signedXdr),
    say: () => undefined,
    note: (liveUntilLedger: number) => request.notes.addDelegation({ batch, channel: spender, liveUntilLedger }),
  }
  await ensureEscrow(network, employer, { spender, amount: 5n, leastLedgers: 1_000, ledgers: 50_000 }, steps)
  expect(await runBatch(request)).toEqual({ paid: 3, payouts: 3 })
  expect((await readOwnDelegations(network, employer, [spender])).delegations).toMatchObject([{ left: 5n }])
  // Nor is it taken for a third one.
  const { body: third } = await service.ask('POST', '/batches', {
    session: employer.session,
    body: { name: 'the third' },
  })
  const rival = { ...request, batch: String(third.id), channels: 1 }
  expect(await runBatch(rival)).toEqual({ paid: 3, payouts: 3 })
  expect((await readOwnDelegations(network, employer, [spender])).delegations).toMatchObject([{ left: 5n }])
})

test('revokes an escrow that a failed run of another batch has left, and that its own run has used', async () => {
  const payroll = await prepare()
  const request = await requestOf(payroll)
  const { network } = service.ledger
  const spender = service.channels[0]?.publicKey() ?? ''
  const steps = {
    submit: (signedXdr: string) => sponsorCall(request.client, signedXdr),
    say: () => undefined,
    // Of a batch that does not exist any more.
    note: (liveUntilLedger: number) =>
      request.notes.addDelegation({ batch: crypto.randomUUID(), channel: spender, liveUntilLedger }),
  }
  const escrow = { spender, amount: 50_0000000n, leastLedgers: 1_000, ledgers: 120_000 }
  await ensureEscrow(network, payroll.employer, escrow, steps)
  const trusted = { publicKey: publicHalf(service.key), channels: [spender] }
  expect(await runBatch({ ...request, channels: 1, relay: trusted })).toEqual({ paid: 3, payouts: 3 })
  expect(await delegationsOf(payroll)).toBe(1)
  expect((await readOwnDelegations(network, payroll.employer, [spender])).delegations).toEqual([])
})

test('signs no run over the delegation of another unfinished batch', async () => {
  const payroll = await prepare()
  const request = await requestOf(payroll)
  const { batch: other } = await nextOf(payroll)
  await addPayout(payroll, other)
  const spender = service.channels[0]?.publicKey() ?? ''
  const { network } = service.ledger
  const steps = {
    submit: (signedXdr: string) => sponsorCall(request.client, signedXdr),
    say: () => undefined,
    note: (liveUntilLedger: number) => request.notes.addDelegation({ batch: other, channel: spender, liveUntilLedger }),
  }
  await ensureEscrow(network, payroll.employer, { spender, amount: 5n, leastLedgers: 1_000, ledgers: 50_000 }, steps)
  const line = { payout: 'p', contractor: 'c', address: 'G', channel: spender, amount: 5n, encryptedAmount: 'seal' }
  await expect(manifestOf(request, [line])).rejects.toMatchObject({ code: 'channel-busy' })
  expect((await manifestOf({ ...request, batch: other }, [line]))?.delegations).toMatchObject([{ channel: spender }])
})

test('revokes the escrow of a channel that its run does not use any more', async () => {
  const payroll = await prepare()
  const { network } = service.ledger
  const channels = service.channels.map((channel) => channel.publicKey())
  const left = async () => (await readOwnDelegations(network, payroll.employer, channels)).delegations
  await prepareRun(payroll)
  expect(await left()).toHaveLength(2)
  const [, gone] = channels
  let isRefused = false
  const without = async (request: Request): Promise<Response> => {
    if (request.method === 'POST' && request.url.endsWith('/run') && !isRefused) {
      isRefused = true
      return Response.json({ error: 'not ready', code: 'run-not-ready', errors: [] }, { status: 409 })
    }
    const hide = (body: Body) => ({
      ...body,
      channels: (body.channels as Body[]).map((one) => (one.address === gone ? { ...one, available: false } : one)),
    })
    return await lying(({ url }) => url.endsWith('/relay'), hide)(request)
  }
  expect(await runBatch(await requestOf(payroll, without, { revokes: false }))).toEqual({ paid: 3, payouts: 3 })
  expect(await left()).toMatchObject([{ spender: channels[0], left: 0n }])
})

/** The client's RPC after it has dropped the ledgers before its latest ones. */
async function forgetfulRpc() {
  const { rpc } = service.ledger.network
  const { latestLedger: oldestLedger } = await rpc.getHealth()
  const getTransaction = async (hash: string) => ({ ...(await rpc.getTransaction(hash)), oldestLedger })
  return Object.assign(Object.create(rpc) as typeof rpc, { getTransaction })
}

/** An archive with the account's events up to now. */
async function archiveOf({ address }: { address: string }): Promise<TokenArchive> {
  const { rpc, token } = service.ledger.network
  const { oldestLedger } = await rpc.getHealth()
  const events = (await readRecentEvents(rpc, accountFilters(token, address), oldestLedger)).map((event) => ({
    id: event.id,
    contract_id: event.contract,
    ledger_seq: event.ledger,
    ledger_close_time: event.closedAt,
    tx_hash: event.transaction,
    event_index: event.eventIndex,
    topics_xdr: [...event.topics],
    data_xdr: event.data,
  }))
  const read = async () => ({ events, complete: true })
  const archive = { readEvents: read, readTransaction: read, readToken: read, readRegistry: read }
  return { name: 'https://archive.example', findStart: async () => undefined, ...archive }
}

test('signs nothing while it does not know what was paid before, and names the archive that says so', async () => {
  const payroll = await paidPayroll()
  const { network } = service.ledger
  const said: string[] = []
  const rpc = await forgetfulRpc()
  const request = { ...(await requestOf(payroll)), say: (line: string) => void said.push(line) }
  const forgotten = { ...request, deployment: { ...network, rpc }, notes: openNotes(payroll.employer, emptyStore()) }
  await expect(runBatch(forgotten)).rejects.toMatchObject({ code: 'history-incomplete' })
  const archives = [await archiveOf(payroll.employer)]
  expect(await runBatch({ ...forgotten, deployment: { ...network, rpc, archives } })).toEqual({ paid: 3, payouts: 3 })
  expect(said).toContainEqual(expect.stringContaining('come from https://archive.example'))
  expect(await delegationsOf(payroll)).toBe(2)
})

test('says why a run ended', async () => {
  const payroll = await prepare()
  const run = { status: 'failed', error: 'words', code: 'employer-paid' }
  const failing = async (request: Request): Promise<Response> => {
    const progress = { status: 'failed', settledCount: 0, failedCount: 0, payoutCount: 3, run }
    return request.url.endsWith('/run') ? Response.json(progress) : await lying(isStatus, () => progress)(request)
  }
  await expect(requestOf(payroll, failing).then(runBatch)).rejects.toMatchObject({
    code: 'run-failed',
    reason: 'employer-paid',
    message: expect.stringMatching(/words \(employer-paid\); 0 of 3 payouts are paid/),
  })
})

test('sends a call again as it is while the service cannot answer', async () => {
  const payroll = await prepare()
  let failures = 0
  const sent = new Map<string, number>()
  const shaky = async (request: Request): Promise<Response> => {
    if (request.method !== 'POST' || !request.url.endsWith('/calls')) return await call(request)
    const { signedXDR } = (await request.clone().json()) as { signedXDR: string }
    sent.set(signedXDR, (sent.get(signedXDR) ?? 0) + 1)
    failures += 1
    if (failures % 2 === 1) return Response.json({ error: 'transfer failed', code: 'unavailable' }, { status: 500 })
    return await call(request)
  }
  expect(await runBatch(await requestOf(payroll, shaky))).toEqual({ paid: 3, payouts: 3 })
  expect([...sent.values()]).toEqual([2, 2, 2, 2])
  expect(await callsOf(payroll)).toEqual(['revoke_spender', 'revoke_spender', 'set_spender', 'set_spender'])
})
