import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Keypair } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { authorize, discloseForOwner } from '#lib/cli/client/delegated-disclosure.ts'
import { presentVerified, verifyFiles, writeRequest } from '#lib/cli/client/disclosure.ts'
import { answerRequest } from '#lib/cli/client/disclosure-answer.ts'
import { sendAndWait } from '#lib/cli/client/participants.ts'
import { makeAudit, makeStatement } from '#lib/cli/client/statements.ts'
import { devnetKeys } from '#lib/devnet/devnet.ts'
import { disclosureMessage } from '#lib/disclosure/authorization.ts'
import { readHistory, readPayloads } from '#lib/disclosure/history.ts'
import type { Question } from '#lib/disclosure/request.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { buildTransfer } from '#lib/wallet/calls.ts'
import { type Payer, startTestLedger, type TestLedger } from '../support/test-ledger.ts'
import { delegate, payFromDelegation } from './delegation.ts'
import { OTHER_TOKEN } from './fake-ledger.ts'

let ledger: TestLedger
let owner: Payer
let channel: Payer
let payee: Payer
let folder: string
const hashes: string[] = []

const file = (name: string) => path.join(folder, name)

const payDelegated = async (amount: bigint) =>
  hashes.push(await payFromDelegation(ledger.network, { owner, channel, to: payee.address, amount }))

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'delegated-'))
  ledger = await startTestLedger()
  const { network } = ledger
  owner = await ledger.endowPayer(1_000n)
  channel = await ledger.endowPayer(0n)
  payee = await ledger.endowPayer(0n)
  await delegate(network, owner, channel.address, 100n)
  await payDelegated(40n)
  await payDelegated(25n)
  const { passphrase, token } = network
  const period = { from: '2020-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z' }
  const question: Question = {
    network: passphrase,
    token,
    account: owner.address,
    statement: 'total',
    role: 'sender',
    period,
  }
  await writeRequest(question, { out: file('request.json'), key: file('requester.json') })
})
afterAll(async () => {
  await ledger.close()
  await rm(folder, { recursive: true })
})

const disclose = (signature: string, paid: readonly string[] = hashes, channels: Keypair[] = [channel.signer]) =>
  discloseForOwner(ledger.network, channels, {
    request: file('request.json'),
    hashes: paid,
    signature,
    out: file('bundle.json'),
  })

const authorizing = (by: Payer, paid: readonly string[] = hashes) =>
  authorize(ledger.network, by.signer, { request: file('request.json'), hashes: paid, spender: channel.address })

test('a channel discloses the payments that its owner has signed for', async () => {
  const signature = await authorizing(owner)
  const said = await disclose(signature)
  expect(said).not.toMatch(/\b(0\.0000065|65)\b/)
  const { request, verified } = await verifyFiles({
    request: file('request.json'),
    key: file('requester.json'),
    bundle: file('bundle.json'),
    network: `${ledger.devnet.url}/deployment.json`,
    archives: [],
  })
  const [outcome, , ...lines] = presentVerified(request, verified).split('\n')
  const [limits, payments] = [lines.at(-1), lines.slice(0, -1)]
  expect(limits).toMatch(/does not show whether money went back through other accounts/)
  expect(outcome).toMatch(/^verified .* 0\.0000065$/)
  expect(payments).toHaveLength(2)
  for (const payment of payments) expect(payment).toContain(`paid by ${channel.address}`)
})

test('a channel discloses no other payments', async () => {
  const signature = await authorizing(owner, hashes.slice(0, 1))
  const refused = { name: 'DisclosureError', code: 'not-authorized' }
  await expect(disclose(signature)).rejects.toMatchObject(refused)
  await expect(disclose('')).rejects.toMatchObject(refused)
  const otherRequest = await readFile(file('request.json'), 'utf8')
  const { passphrase } = ledger.network
  const message = disclosureMessage({
    passphrase,
    account: owner.address,
    channel: channel.address,
    request: otherRequest,
    payments: [],
  })
  await expect(disclose(payee.signer.signMessage(message).toString())).rejects.toMatchObject(refused)
  await expect(disclose(signature, hashes, [payee.signer])).rejects.toMatchObject({ code: 'other-keys' })
  await expect(authorizing(payee)).rejects.toMatchObject({ code: 'other-keys' })
})

test('the signed message names the request and the sorted payments by their hashes', () => {
  const payments = [
    { transaction: 'b'.repeat(64), eventIndex: 0 },
    { transaction: 'a'.repeat(64), eventIndex: 2 },
  ]
  expect(disclosureMessage({ passphrase: 'Net', account: 'GA', channel: 'GB', request: '{}\n', payments })).toBe(
    'Disclose 2 payments of GA by GB on Net: ' +
      'request ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356, ' +
      'payments e77ed8e6328327a21c686efd7efb711543b78dbf84c953c21a24a4f737f0bb3e',
  )
})

test('the owner’s total says how many payments the channel has made', async () => {
  const { network } = ledger
  const { spendable: opening } = await syncBalance(network, owner)
  const { signedXdr } = await buildTransfer(network, owner, { to: payee.address, amount: 7n, opening })
  await sendAndWait(network, signedXdr)
  const files = { request: file('request.json'), out: file('own.json') }
  const said = await answerRequest(network, { holder: owner }, files)
  expect(said).toMatch(/: 1 payment, 0\.0000007, in 1 proof\nwithout 2 payments by channels/)
})

test('reads the payloads of calls of the token only', async () => {
  const { network } = ledger
  const { events } = await readHistory(network, owner.address)
  const countOf = async (token: string) =>
    (await readPayloads({ ...network, token }, events)).filter(({ payload }) => payload).length
  expect(await countOf(network.token)).toBe(3)
  expect(await countOf(OTHER_TOKEN)).toBe(0)
})

test('the auditor finds the rest of the delegation on the ledger', async () => {
  const { network } = ledger
  const { auditor } = devnetKeys(network.passphrase)
  const { rows, notes } = JSON.parse(
    (await makeAudit(network, [auditor], { account: owner.address, format: 'json' })).text,
  )
  expect(rows.map(({ operation }: Record<string, string>) => operation)).toContain('set_spender')
  expect(notes).toEqual([])
})

test('the owner’s statement includes the channel’s payments, and its balances are those of the ledger', async () => {
  const { text, hasFailed } = await makeStatement(ledger.network, owner, { format: 'json' })
  expect(hasFailed).toBe(false)
  const { rows, 'As of': asOf } = JSON.parse(text)
  expect(asOf).toMatch(/^ledger \d+, 20\d\d-\d\d-\d\dT/)
  const columns = rows.map(({ direction, sent, other, balance, note }: Record<string, string>) => [
    direction,
    sent ?? other,
    balance,
    note,
  ])
  expect(columns).toEqual([
    ['deposited', '0.0001000', '0.0001000', null],
    ['escrowed', '0.0000100', '0.0000900', null],
    ['sent', '0.0000040', '0.0000900', `paid by channel ${channel.address}`],
    ['sent', '0.0000025', '0.0000900', `paid by channel ${channel.address}`],
    ['sent', '0.0000007', '0.0000893', null],
  ])
})

test('a statement from an RPC that is behind fails, and says since when', async () => {
  const { rpc } = ledger.network
  const closed = Math.floor(Date.now() / 1_000) - 35 * 60
  const getEvents: typeof rpc.getEvents = async (request) => ({
    ...(await rpc.getEvents(request)),
    latestLedgerCloseTime: String(closed),
  })
  const behind = { ...ledger.network, rpc: Object.assign(Object.create(rpc), { getEvents }) }
  const options = { format: 'json', from: '2026-01-01' }
  const { text, hasFailed } = await makeStatement(behind, owner, options)
  expect(hasFailed).toBe(true)
  const time = new Date(closed * 1_000).toISOString()
  expect(JSON.parse(text).notes[0]).toMatch(`which closed at ${time}: later events are missing`)
  // A period that ended before is whole.
  const past = await makeStatement(behind, owner, { ...options, to: new Date(closed * 1_000).toISOString() })
  expect(past.hasFailed).toBe(false)
})

test('a statement of a period also compares the balances after it', async () => {
  const whole = JSON.parse((await makeStatement(ledger.network, owner, { format: 'json' })).text)
  const [{ date }] = whole.rows
  const { text, hasFailed } = await makeStatement(ledger.network, owner, { format: 'json', to: date })
  const { rows, notes } = JSON.parse(text)
  expect([rows, hasFailed]).toEqual([[], false])
  expect(notes.join()).not.toContain('could not be compared')
})

test('a statement with the keys of another account says so, and accuses no source', async () => {
  const foreign = { ...owner, keys: payee.keys }
  await expect(makeStatement(ledger.network, foreign, { format: 'json' })).rejects.toMatchObject({ code: 'other-keys' })
})

test('a statement of an account without delegations is compared with the ledger', async () => {
  const { text, hasFailed } = await makeStatement(ledger.network, payee, { format: 'json' })
  expect(hasFailed).toBe(false)
  expect(JSON.parse(text).notes.join()).not.toContain('compared')
})

test('a statement says that an account changed while it was read, and accuses no source', async () => {
  const { rpc } = ledger.network
  const { events } = await readHistory(ledger.network, owner.address)
  const last = events.at(-1)
  let isFirst = true
  const getEvents: typeof rpc.getEvents = async (request) => {
    const response = await rpc.getEvents(request)
    // The last event happens after each reading of the history, and before that of the balances.
    const isHistory = isFirst || 'cursor' in request || request.startLedger < (last?.ledger ?? 0) - 12
    isFirst = false
    const latestLedger = (last?.ledger ?? 0) - 1
    return isHistory
      ? { ...response, latestLedger, events: response.events.filter(({ id }) => id !== last?.id) }
      : response
  }
  const busy = { ...ledger.network, rpc: Object.assign(Object.create(rpc), { getEvents }) }
  const { text, hasFailed } = await makeStatement(busy, owner, { format: 'json' })
  expect(JSON.parse(text).notes[0]).toMatch('the account changed while it was read')
  expect(text).not.toContain('do not add up')
  // Otherwise a payment to the account could hide a lie about it.
  expect(hasFailed).toBe(true)
})
