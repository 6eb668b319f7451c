import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { get } from 'node:http'
import { Asset, type rpc, xdr } from '@stellar/stellar-sdk'
import { beforeAll, expect, test } from 'vitest'
import { issuer, keypair, openTestNetwork, passphrase, pay, shareNetwork } from './network-fixture.ts'

const payer = keypair('payer')
const payee = keypair('payee')
const NATIVE = Asset.native().contractId(passphrase)

const network = shareNetwork()

beforeAll(async () => {
  await network.createAccounts(payer, payee)
  // Three ledgers with one payment each: numbers 3, 4 and 5.
  for (const amount of ['1', '2', '3']) await network.settle(await network.build(payer, pay(amount)))
})

const hash = (bytes: Uint8Array) => new Uint8Array(createHash('sha256').update(bytes).digest())

async function call(method: string, params?: unknown) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method, params })
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(network.devnet.rpcUrl, { method: 'POST', headers, body })
  expect(response.status).toBe(200)
  return await response.json()
}

test('serves getHealth, getNetwork, getVersionInfo and getLatestLedger', async () => {
  const { server, devnet } = network
  const health = await server.getHealth()
  expect(health).toMatchObject({ status: 'healthy', latestLedger: 5, oldestLedger: 1, ledgerRetentionWindow: 17_280 })
  expect(await server.getNetwork()).toEqual({
    friendbotUrl: devnet.friendbotUrl,
    passphrase,
    protocolVersion: 28,
  })
  expect((await server.getVersionInfo()).protocolVersion).toBe(28)
  const latest = await server.getLatestLedger()
  expect(latest.sequence).toBe(5)
  expect(latest.closeTime).toBe(String(network.clock.now / 1000))
  expect(latest.headerXdr.scpValue.ext.type).toBe('stellarValueBasic')
})

test('is unhealthy 30 seconds after the last ledger closed', async () => {
  const stale = await openTestNetwork()
  stale.clock.now += 30_000
  expect((await stale.server.getHealth()).status).toBe('healthy')
  stale.clock.now += 1000
  await expect(stale.server.getHealth()).rejects.toMatchObject({
    code: -32603,
    message: expect.stringMatching(/^latency \(.*\) since last known ledger closed is too high \(>30s\)$/),
  })
  stale.close()
  expect((await stale.server.getHealth()).status).toBe('healthy')
  await stale.stop()
})

test('includes the hash of the previous ledger in each ledger', async () => {
  const { ledgers, cursor } = await network.server.getLedgers({ startLedger: 1 })
  expect(ledgers.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5])
  expect(cursor).toBe('5')
  for (const [index, ledger] of ledgers.entries()) {
    const previous = ledgers[index - 1]?.hash ?? '0'.repeat(64)
    expect(Buffer.from(ledger.headerXdr.header.previousLedgerHash.value).toString('hex')).toBe(previous)
    expect(Buffer.from(ledger.headerXdr.hash.value).toString('hex')).toBe(ledger.hash)
  }
})

test('returns a close meta that matches the hashes in the header', async () => {
  const { ledgers } = await network.server.getLedgers({ startLedger: 3, pagination: { limit: 1 } })
  const [ledger] = ledgers
  if (ledger?.metadataXdr.type !== 'v2') throw new Error('returns a close meta of version 2')
  const { txSet, txProcessing } = ledger.metadataXdr.v2
  const { header } = ledger.headerXdr
  expect(header.scpValue.txSetHash.value).toEqual(hash(txSet.toXdr()))
  const results = txProcessing.map(({ result }) => result)
  expect(header.txSetResultHash.value).toEqual(hash(new xdr.TransactionResultSet({ results }).toXdr()))
  const { transactions } = await network.server.getTransactions({ startLedger: 3, pagination: { limit: 1 } })
  expect(results.map((result) => Buffer.from(result.transactionHash.value).toString('hex'))).toEqual([
    transactions[0]?.txHash,
  ])
  expect(txProcessing[0]?.txApplyProcessing.toXdr('base64')).toBe(transactions[0]?.resultMetaXdr.toXdr('base64'))
  expect(txProcessing[0]?.feeProcessing.map(({ type }) => type)).toEqual(['ledgerEntryState', 'ledgerEntryUpdated'])
  const [classic] = txSet.v1TxSet.phases
  const [component] = classic?.type === 'v0Components' ? classic.v0Components : []
  expect(component?.txsMaybeDiscountedFee).toMatchObject({ baseFee: 100n, txs: { length: 1 } })
  expect((await network.server.getLatestLedger()).metadataXdr.type).toBe('v2')
})

test('pages through getLedgers and getTransactions', async () => {
  const { server } = network
  const first = await server.getLedgers({ startLedger: 2, pagination: { limit: 2 } })
  expect(first.ledgers.map(({ sequence }) => sequence)).toEqual([2, 3])
  const second = await server.getLedgers({ pagination: { cursor: first.cursor, limit: 2 } })
  expect(second.ledgers.map(({ sequence }) => sequence)).toEqual([4, 5])

  const page = await server.getTransactions({ startLedger: 1, pagination: { limit: 3 } })
  expect(page.transactions.map(({ ledger }) => ledger)).toEqual([2, 3, 4])
  expect(page.transactions[0]).toMatchObject({ status: 'SUCCESS', applicationOrder: 1, feeBump: false })
  const rest = await server.getTransactions({ pagination: { cursor: page.cursor } })
  expect(rest.transactions.map(({ ledger }) => ledger)).toEqual([5])
  const none = await server.getTransactions({ pagination: { cursor: rest.cursor } })
  expect(none.transactions).toEqual([])
  expect(none.cursor).toBe(rest.cursor)
})

test('finds a transaction with getTransaction once its ledger has closed', async () => {
  const transaction = await network.build(payer, pay('4'))
  const { hash } = await network.server.sendTransaction(transaction)
  const raw = await call('getTransaction', { hash })
  expect(raw.result).toMatchObject({ status: 'NOT_FOUND', ledger: 0, createdAt: '0', txHash: hash })
  network.close()
  const { result } = await call('getTransaction', { hash })
  expect(result).toMatchObject({ status: 'SUCCESS', applicationOrder: 1, feeBump: false, txHash: hash })
  expect(result.createdAt).toBe(String(network.clock.now / 1000))
  expect(result.envelopeXdr).toBe(transaction.toEnvelope().toXdr('base64'))
  expect(typeof result.latestLedgerCloseTime).toBe('string')
})

test('keeps the order and spelling of the request in getLedgerEntries, and omits missing entries', async () => {
  const keys = [payee, keypair('nobody'), payer].map((account) =>
    xdr.LedgerKey.account(new xdr.LedgerKeyAccount({ accountId: account.xdrAccountId() })),
  )
  const { entries } = await network.server.getLedgerEntries(...keys)
  expect(entries.map((entry) => entry.key.toXdr('base64'))).toEqual(
    [keys[0], keys[2]].map((wanted) => wanted?.toXdr('base64')),
  )
  expect(entries[0]?.liveUntilLedgerSeq).toBeUndefined()
  const many = Array.from({ length: 201 }, () => keys[0]?.toXdr('base64'))
  expect((await call('getLedgerEntries', { keys: many })).error).toEqual({
    code: -32602,
    message: 'key count (201) exceeds maximum supported (200)',
  })
})

test('filters getEvents by topic, and pages by id', async () => {
  const { server } = network
  const transfer = xdr.ScVal.scvSymbol('transfer').toXdr('base64')
  const filters: rpc.Api.EventFilter[] = [{ type: 'contract', contractIds: [NATIVE], topics: [[transfer, '**']] }]
  const { events } = await server.getEvents({ startLedger: 3, endLedger: 6, filters })
  expect(
    events.map(({ ledger, transactionIndex, operationIndex }) => [ledger, transactionIndex, operationIndex]),
  ).toEqual([
    [3, 1, 0],
    [4, 1, 0],
    [5, 1, 0],
  ])
  expect(events[0]).toMatchObject({ id: '0000000012884905984-0000000000', inSuccessfulContractCall: true })

  const all: string[] = []
  let page = await server.getEvents({ startLedger: 3, filters: [], limit: 1 })
  while (page.events.length > 0) {
    all.push(...page.events.map(({ id }) => id))
    page = await server.getEvents({ cursor: page.cursor, filters: [], limit: 1 })
  }
  expect(all).toEqual(all.toSorted())
  const whole = await server.getEvents({ startLedger: 3, filters: [] })
  expect(whole.events.map(({ id }) => id)).toEqual(all)
  const wrongLength = [[transfer, '*']]
  expect((await server.getEvents({ startLedger: 3, filters: [{ topics: wrongLength }] })).events).toEqual([])
})

test('covers the last ten ledgers in getFeeStats', async () => {
  const { inclusionFee, sorobanInclusionFee } = await network.server.getFeeStats()
  expect(inclusionFee).toMatchObject({ max: '100', p99: '100', transactionCount: '5', ledgerCount: 10 })
  expect(sorobanInclusionFee).toMatchObject({ max: '0', transactionCount: '0', ledgerCount: 0 })
})

test('accepts POST from any origin', async () => {
  const { rpcUrl, url } = network.devnet
  expect((await fetch(rpcUrl)).status).toBe(405)
  const preflight = await fetch(rpcUrl, {
    method: 'OPTIONS',
    headers: { 'access-control-request-headers': 'content-type,x-client-name', origin: 'https://a.example' },
  })
  expect(preflight.headers.get('access-control-allow-origin')).toBe('*')
  expect(preflight.headers.get('access-control-allow-headers')).toBe('content-type,x-client-name')
  expect((await fetch(`${url}/nothing`)).status).toBe(404)
})

test('responds 404 to a path that is not a URL', async () => {
  const [response] = await once(get({ port: new URL(network.devnet.url).port, path: '//' }), 'response')
  expect(response.resume().statusCode).toBe(404)
})

test('serves /deployment.json with the contracts and no secret', async () => {
  const text = await (await fetch(`${network.devnet.url}/deployment.json`)).text()
  expect(JSON.parse(text)).toMatchObject({
    network: 'local',
    rpcUrl: network.devnet.rpcUrl,
    passphrase,
    asset: {
      code: 'USDC',
      issuer: issuer.publicKey(),
      contract: new Asset('USDC', issuer.publicKey()).contractId(passphrase),
    },
    auditor: { id: 0, key: expect.stringMatching(/^[0-9a-f]{128}$/) },
    interface: '0.8.0',
  })
  expect(text).not.toContain(network.devnet.issuerSecret)
})

test('passes requests below /idp to the identity handler', async () => {
  const other = await openTestNetwork({ identity: (request, response) => void response.end(`idp ${request.url}`) })
  expect(await (await fetch(`${other.devnet.url}/idp/jwks`)).text()).toBe('idp /idp/jwks')
  await other.stop()
  expect((await fetch(`${network.devnet.url}/idp/jwks`)).status).toBe(404)
})
