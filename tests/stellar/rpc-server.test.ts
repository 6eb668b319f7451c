import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Account, Keypair, TransactionBuilder } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { readLedgerRange } from '#lib/stellar/ledger-range.ts'
import { openNetwork } from '#lib/stellar/network.ts'
import { openClientRpc } from '#lib/stellar/rpc-server.ts'
import { lookUp } from '#lib/stellar/transaction.ts'

/** What the RPC does with a request: it responds or refuses as of a ledger, or closes the connection without a response. */
type Answer = number | { error: string } | { refused: number } | 'close'

let answers: Answer[] = []
let asked: string[] = []
const rangeOf = (latestLedger: number) => ({
  ...{ status: 'NOT_FOUND', latestLedger, latestLedgerCloseTime: '1777636800' },
  ...{ oldestLedger: 1, oldestLedgerCloseTime: '1777630000' },
})
function bodyOf(method: string, answer: Exclude<Answer, 'close'>): object {
  if (typeof answer === 'number') {
    const sent = { status: 'PENDING', hash: 'aa', latestLedger: answer }
    return { result: method === 'sendTransaction' ? sent : rangeOf(answer) }
  }
  if ('error' in answer) return { error: { code: -32600, message: answer.error } }
  return { result: { status: 'ERROR', hash: 'aa', latestLedger: answer.refused } }
}
const server = createServer(async (request, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const { id, method } = JSON.parse(Buffer.concat(chunks).toString())
  asked.push(method)
  const answer = answers.shift() ?? 50
  if (answer === 'close') return request.socket.destroy()
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ jsonrpc: '2.0', id, ...bodyOf(method, answer) }))
})
let url: string
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => void server.close())
beforeEach(() => {
  asked = []
})

const openService = () => openNetwork({ name: 'local', passphrase: '', rpcUrl: url, pollMs: 50 })

test.each([
  ['a client', () => readLedgerRange(openClientRpc(url))],
  ['the service', () => lookUp(openService(), 'ab'.repeat(32))],
])('repeats a call of %s whose connection ended before a response, once', async (_, read) => {
  answers = ['close', 50]
  expect(await read()).toMatchObject({ latestLedger: 50 })
  answers = ['close', 'close', 50]
  await expect(read()).rejects.toMatchObject({ name: 'LedgerError', code: 'unavailable' })
})

test('asks again for a response that is older than an earlier one', async () => {
  const rpc = openClientRpc(url)
  answers = [50, 48, 49, 51]
  expect((await readLedgerRange(rpc)).latestLedger).toBe(50)
  expect((await readLedgerRange(rpc)).latestLedger).toBe(51)
  expect(asked).toHaveLength(4)
})

test('believes a network that starts over, or that was far ahead by mistake', async () => {
  const rpc = openClientRpc(url)
  answers = [5_000_000, 50, 51]
  await readLedgerRange(rpc)
  expect((await readLedgerRange(rpc)).latestLedger).toBe(50)
  expect((await readLedgerRange(rpc)).latestLedger).toBe(51)
})

test.each([
  'startLedger must be within the ledger range: 1 - 48',
  'start ledger (50) must be between the oldest ledger: 1 and the latest ledger: 48 for this rpc instance',
])('asks again if a node has not closed the ledger that an earlier response named: %s', async (error) => {
  const rpc = openClientRpc(url)
  answers = [50, { error }, { error }, 50]
  await readLedgerRange(rpc)
  expect((await readLedgerRange(rpc)).latestLedger).toBe(50)
  expect(asked).toHaveLength(4)
})

test('submits again what a node refused as of an older ledger, and nothing else', async () => {
  const rpc = openClientRpc(url)
  const account = new Account(Keypair.random().publicKey(), '1')
  const transaction = new TransactionBuilder(account, { fee: '100', networkPassphrase: 'a network' })
    .setTimebounds(0, 1)
    .build()
  answers = [50, { refused: 49 }, 48]
  await readLedgerRange(rpc)
  expect(await rpc.sendTransaction(transaction)).toMatchObject({ status: 'PENDING' })
  expect(asked).toEqual(['getTransaction', 'sendTransaction', 'sendTransaction'])
  answers = [{ refused: 50 }]
  expect(await rpc.sendTransaction(transaction)).toMatchObject({ status: 'ERROR' })
})

test('throws errors, never the plain objects of JSON-RPC', async () => {
  const rpc = openClientRpc(url)
  answers = [{ error: 'the database is locked' }]
  await expect(rpc.getNetwork()).rejects.toMatchObject({
    ...{ name: 'LedgerError', code: 'unavailable' },
    cause: { message: 'the database is locked' },
  })
})
