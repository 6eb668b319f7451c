import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { readAmounts } from '#lib/cli/client/amounts-file.ts'
import { notesFile } from '#lib/cli/client/notes-file.ts'
import { endow, sendAndWait } from '#lib/cli/client/participants.ts'
import { publicHalf } from '#lib/config/relay-key.ts'
import { openNotes } from '#lib/sdk/own-notes.ts'
import { matchPayees } from '#lib/sdk/payees.ts'
import { createPayrollClient } from '#lib/sdk/payroll-client.ts'
import type { RunRequest } from '#lib/sdk/run-request.ts'
import { formatUnits } from '#lib/text/money.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { buildDelegation } from '#lib/wallet/calls.ts'
import { readOwnDelegations, readPastDelegations } from '#lib/wallet/escrow.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import { openApi } from '../support/api.ts'
import type { SignedInPayer } from '../support/test-service.ts'
import { openRelayService, type RelayService } from './relay-service.ts'

export let service: RelayService
/** answers as the service does */
export let call: (request: Request) => Promise<Response>
export let payees: Holder[]
let relay: Awaited<ReturnType<RelayService['relay']>>
let folder: string

/** Opens the service with a relay for a file's tests. */
export function serveWalletRuns(): void {
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'wallet-run-'))
    service = await openRelayService({ channels: 2 })
    const api = await openApi()
    // The test's ledger closes ten times a second, and a delegation must not end because a test is slow.
    call = async (request) => {
      const response = await api(request)
      if (!request.url.endsWith('/relay') || !response.ok) return response
      return Response.json({ ...(await response.json()), marginLedgers: 10_000 })
    }
    payees = [await service.payee(), await service.payee(), await service.payee()]
    relay = await service.relay()
  })
  afterAll(async () => {
    await relay?.close()
    await service?.close()
    rmSync(folder, { recursive: true, force: true })
  })
}

export const AMOUNTS = [1_0000000n, 2_5000000n, 4n]
export const TOTAL = AMOUNTS.reduce((sum, amount) => sum + amount, 0n)

export interface Payroll {
  employer: SignedInPayer
  contractors: string[]
  batch: string
  list: string
  file: string
}

/** An employer with three contractors, a list of amounts, and a draft batch without payouts. */
export async function prepare(balance = 100_0000000n): Promise<Payroll> {
  const employer = await service.employ(balance)
  const post = async (path: string, body: unknown) => {
    const { body: answer } = await service.ask('POST', path, { session: employer.session, body })
    return String(answer.id)
  }
  const contractors = []
  for (const [index, { address }] of payees.entries()) {
    contractors.push(await post('/contractors', { name: `Payee ${index}`, address }))
  }
  const batch = await post('/batches', { name: 'a run' })
  const rows = payees.map(({ address }, index) => `${address},${formatUnits(AMOUNTS[index] ?? 0n)},${address}`)
  const list = ['contractor,amount,address', ...rows].join('\n')
  return { employer, contractors, batch, list, file: join(folder, batch) }
}

/** The same with a locked batch and its seals to replace, a delegation that is too short, and a balance to merge. */
export async function prepareDifferently(): Promise<Payroll> {
  const { network, issuer } = service.ledger
  const payroll = await prepare(5n)
  const { employer, contractors, batch } = payroll
  const instructions = contractors.map((contractorId) => ({ contractorId, encryptedAmount: 'a note' }))
  await service.ask('POST', `/batches/${batch}/instructions`, { session: employer.session, body: { instructions } })
  await service.ask('POST', `/batches/${batch}/ready`, { session: employer.session })
  const spender = service.channels[0]?.publicKey() ?? ''
  const { sequence } = await network.rpc.getLatestLedger()
  const short = { spender, amount: 5n, opening: employer.opening, liveUntilLedger: sequence + 60 }
  await sendAndWait(network, (await buildDelegation(network, employer, short)).signedXdr)
  await endow(network, issuer, employer, 100_0000000n - 5n, async () => undefined)
  return payroll
}

/** A `fetch` that loses the nth POST, before or after the service has handled it, and every request from then on. */
export function interruptAt(nth: number, when: 'before' | 'after') {
  let posts = 0
  const state = { isCut: false }
  const fetch = async (request: Request): Promise<Response> => {
    if (state.isCut) throw new Error('interrupted')
    if (request.method === 'POST') posts += 1
    state.isCut = posts === nth
    if (state.isCut && when === 'before') throw new Error('interrupted')
    const response = await call(request)
    if (state.isCut) throw new Error('interrupted')
    return response
  }
  return { fetch, state }
}

export async function requestOf(
  payroll: Payroll,
  fetch = call,
  changes: Partial<RunRequest> = {},
): Promise<RunRequest> {
  const { employer, batch, list, file } = payroll
  const client = createPayrollClient({ baseUrl: 'http://localhost:3000/api', session: employer.session, fetch })
  const notes = openNotes(employer, notesFile(file))
  return {
    deployment: service.ledger.network,
    client,
    holder: employer,
    relay: { publicKey: publicHalf(service.key), channels: service.channels.map((channel) => channel.publicKey()) },
    batch,
    payees: await matchPayees(client, readAmounts(list), notes),
    notes,
    channels: 2,
    revokes: true,
    say: () => undefined,
    ...changes,
  }
}

export const receivedBy = () => Promise.all(payees.map((payee) => service.received(payee)))

/** Requires each payee's payment once, these numbers of delegations, and everything else back with the employer. */
export async function expectPaidOnce(
  { employer, file, batch }: Payroll,
  before: readonly bigint[],
  delegations = [1, 1],
): Promise<void> {
  const { network } = service.ledger
  expect((await receivedBy()).map((received, index) => received - (before[index] ?? 0n))).toEqual(AMOUNTS)
  const { body } = await service.ask('GET', `/batches/${batch}`, { session: employer.session })
  expect(body).toMatchObject({ status: 'completed', settledCount: 3 })
  const past = await readPastDelegations(network, employer)
  expect([...past.values()].map((ledgers) => ledgers.length).toSorted()).toEqual(delegations)
  expect((await readOwnDelegations(network, employer, [...past.keys()])).delegations).toEqual([])
  expect((await syncBalance(network, employer)).spendable.value).toBe(100_0000000n - TOTAL)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  for (const amount of AMOUNTS) expect(readFileSync(file, 'utf8')).not.toContain(` ${amount} `)
}

/** What the service has sponsored for the employer, other than payments. */
export async function callsOf({ employer }: Payroll): Promise<string[]> {
  const transfers = await service.db.query.transfers.findMany()
  const own = transfers.filter(({ account, status }) => account === employer.address && status === 'succeeded')
  return own.map(({ kind }) => kind).toSorted()
}
