import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { readLedgerRange } from '#lib/stellar/ledger-range.ts'
import { openNetwork } from '#lib/stellar/network.ts'
import { openClientRpc } from '#lib/stellar/rpc-server.ts'
import { lookUp } from '#lib/stellar/transaction.ts'

/** What the RPC does with a request: it responds as of a ledger, or closes the connection without a response. */
type Answer = number | 'close'

let answers: Answer[] = []
let asked: string[] = []
const rangeOf = (latestLedger: number) => ({
  ...{ status: 'NOT_FOUND', latestLedger, latestLedgerCloseTime: '1777636800' },
  ...{ oldestLedger: 1, oldestLedgerCloseTime: '1777630000' },
})
const server = createServer(async (request, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const { id, method } = JSON.parse(Buffer.concat(chunks).toString())
  asked.push(method)
  const answer = answers.shift() ?? 50
  if (answer === 'close') return request.socket.destroy()
  const result =
    method === 'sendTransaction' ? { status: 'PENDING', hash: 'aa', latestLedger: answer } : rangeOf(answer)
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ jsonrpc: '2.0', id, result }))
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
