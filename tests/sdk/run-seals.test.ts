import { exportJWK, generateKeyPair } from 'jose'
import { beforeAll, expect, test } from 'vitest'
import { makeReady } from '#lib/sdk/batch-ready.ts'
import { openNotes } from '#lib/sdk/own-notes.ts'
import { createPayrollClient } from '#lib/sdk/payroll-client.ts'
import type { RunRequest } from '#lib/sdk/run-request.ts'
import { recognize, sealMissing } from '#lib/sdk/run-seals.ts'
import { RELAY_DOCUMENT, type RelayDocument } from '#lib/wallet/deployment.ts'
import { sealPayout } from '#lib/wallet/seal.ts'
import { holder } from '../wallet/fixtures.ts'

const keyOf = async () =>
  RELAY_DOCUMENT.shape.publicKey.parse(
    await exportJWK((await generateKeyPair('ECDH-ES', { extractable: true })).publicKey),
  )

const [BATCH, CHANNEL, CONTRACTOR] = ['batch', holder('channel').address, 'contractor']
const ADDRESS = holder('payee').address
const CREATED = '2026-01-01T00:00:00.000Z'
const lines: string[] = []
const notes = openNotes(holder('employer'), { read: () => lines, append: (added) => void lines.push(...added) })
const payees = [{ contractor: CONTRACTOR, address: ADDRESS, amount: 5n }]

let key: RelayDocument['publicKey']
let encryptedAmount: string
beforeAll(async () => {
  key = await keyOf()
  encryptedAmount = await sealPayout(key, { batch: BATCH, contractor: CONTRACTOR, spender: CHANNEL }, 5n)
  notes.addSeals([{ payment: { batch: BATCH, contractor: CONTRACTOR, channel: CHANNEL, amount: 5n }, encryptedAmount }])
})

/** What is signed of a batch with one payout, whose state or relay a test changes. */
const recognized = async (payout: object = {}, request: object = {}) =>
  await recognize({ batch: BATCH, payees, notes, relay: { publicKey: key, channels: [CHANNEL] }, ...request }, [
    {
      ...{ id: 'payout', batchId: BATCH, contractorId: CONTRACTOR, createdAt: CREATED, status: 'ready' as const },
      ...{ address: ADDRESS, encryptedAmount, ...payout },
    },
  ])

test('signs a seal of this employer for the amount and the payee of the list', async () => {
  expect(await recognized()).toEqual([
    { payout: 'payout', contractor: CONTRACTOR, address: ADDRESS, channel: CHANNEL, amount: 5n, encryptedAmount },
  ])
})

test.each<[string, () => Promise<[object?, object?]>]>([
  [
    'is to a key that the relay had before',
    async () => [{}, { relay: { publicKey: await keyOf(), channels: [CHANNEL] } }],
  ],
  ['is for a channel that the document lacks', async () => [{}, { relay: { publicKey: key, channels: [] } }]],
  ['is for another batch', async () => [{}, { batch: 'another' }]],
  ['has another amount than the list', async () => [{}, { payees: [{ ...payees[0], amount: 6n }] }]],
  ['goes to another address', async () => [{ address: holder('thief').address }]],
  [
    'was made by someone else',
    async () => [
      { encryptedAmount: await sealPayout(key, { batch: BATCH, contractor: CONTRACTOR, spender: CHANNEL }, 5n) },
    ],
  ],
  ['is no seal', async () => [{ encryptedAmount: 'a note' }]],
])('does not sign a seal that %s', async (_, change) => {
  expect(await recognized(...(await change()))).toEqual([])
})

test('adds a large batch in requests that the service accepts', async () => {
  const MAX_BODY = 256 * 1024
  const sizes: number[] = []
  const client = createPayrollClient({
    baseUrl: 'http://payroll.test/api',
    fetch: async (request) => {
      const { pathname } = new URL(request.url)
      if (pathname.endsWith('/relay')) {
        return Response.json({ publicKey: key, maxChannels: 5, channels: [{ address: CHANNEL, available: true }] })
      }
      if (request.method === 'GET') return Response.json({ status: 'draft', payouts: [] })
      if (pathname.endsWith('/instructions')) sizes.push((await request.text()).length)
      return Response.json({ payouts: [], errors: [] })
    },
  })
  const many = Array.from({ length: 700 }, (_, index) => ({
    contractor: crypto.randomUUID(),
    address: ADDRESS,
    amount: BigInt(index + 1),
  }))
  const relay = { publicKey: key, channels: [CHANNEL] }
  const own = { holder: holder('employer'), notes }
  const given = { client, relay, batch: crypto.randomUUID(), payees: many, ...own, channels: 1, say: () => undefined }
  const run = given as unknown as RunRequest
  await makeReady(run, (missing) => sealMissing(run, missing))
  expect(sizes).toHaveLength(3)
  expect(Math.max(...sizes)).toBeLessThan(MAX_BODY)
})
