import { SorobanDataBuilder, xdr } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sponsorRefused } from '#lib/refusal/sponsor-refusal.ts'
import { markedAsArchived } from '#lib/stellar/entries.ts'
import { type Network, openNetwork } from '#lib/stellar/network.ts'
import { decodeInner } from '#lib/transfers/policy.ts'
import { checkArchived, checkResourceFee, checkResources, simulate } from '#lib/transfers/simulation.ts'
import { type Fault, type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts'
import { PASSPHRASE, signedTransfer } from '../support/inner-transaction.ts'
import { expectRefusal, expectUnavailable, expectVerdict } from './refused.ts'
import {
  FEE_CASES,
  FOOTPRINT_CASES,
  footprint,
  HOST_ERRORS,
  NEEDED,
  NODE_ERRORS,
  RESOURCE_CASES,
  resources,
} from './simulation-cases.ts'

const signedXDR = signedTransfer()
const inner = decodeInner(signedXDR, PASSPHRASE)
const needed = resources([30_000_000, 900, 2_000])
const transactionData = new SorobanDataBuilder()
  .setResources(needed.instructions, needed.diskReadBytes, needed.writeBytes)
  .setResourceFee(80_000n)
  .build()
  .toXdr('base64')
let proxy: FaultProxy
let network: Network

beforeAll(async () => {
  proxy = await startFaultProxy('http://127.0.0.1:1')
  network = openNetwork({ name: 'local', passphrase: PASSPHRASE, rpcUrl: proxy.url, pollMs: 50 })
})
afterAll(() => proxy.close())

test('simulates the signed transaction unchanged, with its authorization enforced', async () => {
  let asked: unknown
  proxy.rule(({ method, params }) => {
    asked = { method, params }
    return { answer: { latestLedger: 7, transactionData, minResourceFee: '80000', results: [{ auth: [], xdr: '' }] } }
  })
  const simulation = await simulate(network, inner)
  expect(asked).toEqual({ method: 'simulateTransaction', params: { transaction: signedXDR, authMode: 'enforce' } })
  expect(simulation.latestLedger).toBe(7)
  expect(simulation.resources.equals(needed)).toBe(true)
  expect(simulation.minResourceFee).toBe(80_000n)
})

test.each(HOST_ERRORS)('reads the error in the host’s output: %s', async (error, detail) => {
  proxy.rule(() => ({ answer: { latestLedger: 7, error, events: [] } }))
  const message = `${sponsorRefused('would-fail').message}: ${detail}`
  await expectRefusal(() => simulate(network, inner), 'would-fail', message)
})

test.each(NODE_ERRORS)('asks again and is unavailable for an error of the node: %s', async (error) => {
  let asked = 0
  proxy.rule(() => {
    asked += 1
    return { answer: { latestLedger: 7, error, events: [] } }
  })
  await expectUnavailable(() => simulate(network, inner))
  expect(asked).toBe(3)
})

test('simulates once a node that has just started can', async () => {
  let asked = 0
  proxy.rule(() => {
    asked += 1
    const answer = { latestLedger: 7, transactionData, minResourceFee: '80000', results: [{ auth: [], xdr: '' }] }
    return { answer: asked === 1 ? { latestLedger: 7, error: NODE_ERRORS[0], events: [] } : answer }
  })
  expect((await simulate(network, inner)).latestLedger).toBe(7)
})

const nonsense: [string, Fault][] = [
  ['neither an error nor resources', { answer: { latestLedger: 7 } }],
  ['resources that cannot be read', { answer: { latestLedger: 7, transactionData: 'garbage!' } }],
  ['no resource fee', { answer: { latestLedger: 7, transactionData } }],
  ['a resource fee in words', { answer: { latestLedger: 7, transactionData, minResourceFee: 'much' } }],
  ['no ledger', { answer: { transactionData, minResourceFee: '80000' } }],
  ['an error that is no text', { answer: { latestLedger: 7, error: { code: 1 } } }],
  ['a JSON-RPC error', { error: { code: -32602, message: 'unknown authMode' } }],
  ['a 500', { status: 500 }],
  ['a connection that drops', { drop: true, delivered: false }],
]
test.each(nonsense)('is unavailable for %s', async (_, fault) => {
  proxy.rule(() => fault)
  await expectUnavailable(() => simulate(network, inner))
})

test.each(RESOURCE_CASES)('%s', async (_, declared, needed, reason) => {
  await expectVerdict(() => checkResources(resources(declared), resources(needed)), reason)
})

test.each(FOOTPRINT_CASES)('a footprint %s', async (_, declared, reason) => {
  const withFootprint = (given: Parameters<typeof footprint>[0]) =>
    new xdr.SorobanResources({ footprint: footprint(given), instructions: 0, diskReadBytes: 0, writeBytes: 0 })
  await expectVerdict(() => checkResources(withFootprint(declared), withFootprint(['abc', 'xy'])), reason)
})

test.each(FEE_CASES)('a resource fee %s', async (_, fee, declared, reason) => {
  await expectVerdict(() => checkResourceFee({ fee, resources: resources(declared) }, NEEDED), reason)
})

describe('entries that are archived', () => {
  /** A transaction that reads `a`, writes the given entries, and marks some of them as archived. */
  function entriesOf(readWrite: string, marked = '') {
    const { readOnly, readWrite: written } = footprint(['a', readWrite])
    const indices = Array.from(marked, (letter) => readWrite.indexOf(letter))
    const resourceExt = new xdr.SorobanResourcesExtV0({ archivedSorobanEntries: indices })
    const data = new xdr.SorobanTransactionData({
      ext: xdr.SorobanTransactionDataExt.resourceExt(resourceExt),
      resources: new xdr.SorobanResources({
        footprint: new xdr.LedgerFootprint({ readOnly, readWrite: written }),
        instructions: 0,
        diskReadBytes: 0,
        writeBytes: 0,
      }),
      resourceFee: 0n,
    })
    return { resources: data.resources, archived: markedAsArchived(data) }
  }

  const code = new xdr.ContractCodeEntry({
    ext: xdr.ContractCodeEntryExt.v0(),
    hash: new Uint8Array(32),
    code: new Uint8Array(),
  })

  /** The entry `z` is archived. */
  const answerEntries = () =>
    proxy.rule(({ method, params }) => {
      if (method !== 'getLedgerEntries') return { status: 500 }
      const [archived = ''] = footprint(['z', '']).readOnly.map((key) => key.toXdr('base64'))
      const entries = (params.keys as string[]).map((key) => ({
        key,
        xdr: xdr.LedgerEntryData.contractCode(code).toXdr('base64'),
        lastModifiedLedgerSeq: 1,
        liveUntilLedgerSeq: key === archived ? 0 : 900,
      }))
      return { answer: { latestLedger: 100, entries } }
    })

  test.each([
    ['none', ['b'], ['b'], undefined],
    ['one that the call needs, and that is marked', ['b', 'b'], ['b', 'b'], undefined],
    ['one that the call needs, and that is not marked', ['b'], ['b', 'b'], 'too-few-resources'],
    ['one that was restored since', ['b', 'b'], ['b'], undefined],
    ['a spare one that is marked', ['bz', 'z'], ['b'], 'excess-footprint'],
    ['a spare one that is not marked', ['bz'], ['b'], 'excess-footprint'],
    ['a spare one that lives', ['by'], ['b'], undefined],
  ] as const)('%s', async (_, declared, needed, reason) => {
    answerEntries()
    const [given, need] = [entriesOf(...(declared as [string])), entriesOf(...(needed as [string]))]
    await expectVerdict(() => checkArchived(network, given, need), reason)
  })
})
