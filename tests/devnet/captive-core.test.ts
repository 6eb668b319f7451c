import { type Transaction, xdr } from '@stellar/stellar-sdk'
import { describe, expect, test } from 'vitest'
import type { Loss } from '#lib/devnet/rpc/captive-core.ts'
import { VALIDITY_SECONDS } from '#lib/wallet/transaction.ts'
import { foundAccounts, hashOf, pay, perturb, shareNetwork } from './network-fixture.ts'

/** the losses of each envelope's announcements, in order, by its hash */
const losses = new Map<string, Loss[]>()

const network = shareNetwork({ loses: ({ hash, attempt }) => losses.get(hash)?.[attempt - 1] })
const accounts = foundAccounts(network, 'payer')

const lose = (transaction: Transaction, ...lost: Loss[]) => void losses.set(hashOf(transaction), lost)

interface Schedule {
  /** the time between two ledgers */
  seconds?: number
  /** whether to submit before the nth ledger closes; by default before each of them */
  isDue?: (ledger: number) => boolean
}

/**
 * Submits before each of the next `ledgers` closes. Returns the statuses, and the ledger of inclusion counted from the
 * first.
 */
async function resubmit(
  transaction: Transaction,
  ledgers: number,
  { seconds = 5, isDue = () => true }: Schedule = {},
): Promise<{ statuses: string[]; included: number | undefined }> {
  const statuses: string[] = []
  for (let ledger = 1; ledger <= ledgers; ledger += 1) {
    if (isDue(ledger)) statuses.push(await network.send(transaction))
    network.clock.now += seconds * 1000
    network.devnet.closeLedger()
    if ((await network.find(transaction)).status === 'SUCCESS') return { statuses, included: ledger }
  }
  return { statuses, included: undefined }
}

const times = (count: number, status: string) => Array.from({ length: count }, () => status)

test('includes an announced transaction in the next ledger', async () => {
  const transaction = await network.build(accounts.payer, pay())
  expect(await resubmit(transaction, 3)).toEqual({ statuses: ['PENDING'], included: 1 })
  expect(await network.send(transaction)).toBe('TRY_AGAIN_LATER')
})

test.each<Loss>(['announcement', 'transaction'])(
  'keeps an envelope out for four ledgers in the queue and ten of ban after a lost %s',
  async (loss) => {
    const transaction = await network.build(accounts.payer, pay())
    lose(transaction, loss)
    const { statuses, included } = await resubmit(transaction, 30)
    expect(statuses).toEqual(['PENDING', ...times(3, 'DUPLICATE'), ...times(10, 'TRY_AGAIN_LATER'), 'PENDING'])
    expect(included).toBe(15)
  },
)

test('adds fourteen ledgers for each lost announcement', async () => {
  const transaction = await network.build(accounts.payer, pay())
  lose(transaction, 'announcement', 'announcement', 'announcement')
  expect((await resubmit(transaction, 60)).included).toBe(43)
})

test('includes no envelope for a minute after the validator demanded it in vain', async () => {
  const transaction = await network.build(accounts.payer, pay())
  lose(transaction, 'transaction')
  const { statuses, included } = await resubmit(transaction, 80, { seconds: 1 })
  // 61 ledgers in 61 seconds are too few: the announcements after 14, 28, 42 and 56 seconds are ignored.
  expect(included).toBe(71)
  expect(statuses.filter((status) => status === 'PENDING')).toHaveLength(6)
})

test('never includes a lost envelope that is not resubmitted', async () => {
  const transaction = await network.build(accounts.payer, pay())
  lose(transaction, 'announcement')
  expect((await resubmit(transaction, 40, { isDue: (ledger) => ledger === 1 })).included).toBeUndefined()
})

describe('resubmission once per ledger', () => {
  /** Ledgers in which a call of the wallet can be included. */
  const ledgersOf = (seconds: number) => Math.floor(VALIDITY_SECONDS / seconds)

  test.each([
    [1, 71],
    [2, 43],
    [3, 29],
    [4, 29],
    [4.2, 29],
    [5, 15],
    [6, 15],
    [8, 15],
    [10, 15],
  ])(
    'includes a lost transaction before its max time if a ledger closes every %s seconds: in ledger %i',
    async (seconds, ledger) => {
      for (const [loss, expected] of [
        ['announcement', 15],
        ['transaction', ledger],
      ] as const) {
        const draft = await network.build(accounts.payer, pay())
        const maxTime = BigInt(Math.floor(network.clock.now / 1000) + VALIDITY_SECONDS)
        const cond = xdr.Preconditions.precondTime(new xdr.TimeBounds({ minTime: 0n, maxTime }))
        const transaction = perturb(draft, { cond }, accounts.payer)
        lose(transaction, loss)
        expect((await resubmit(transaction, ledgersOf(seconds), { seconds })).included).toBe(expected)
      }
    },
  )

  test('includes a lost transaction no later than any sparser schedule if a ledger closes every 5 seconds', async () => {
    const everyLedger = await network.build(accounts.payer, pay())
    lose(everyLedger, 'transaction')
    const earliest = (await resubmit(everyLedger, 60)).included
    expect(earliest).toBe(15)
    for (let interval = 2; interval <= 15; interval += 1) {
      const transaction = await network.build(accounts.payer, pay())
      lose(transaction, 'transaction')
      const isDue = (ledger: number) => (ledger - 1) % interval === 0
      const { included } = await resubmit(transaction, 60, { isDue })
      expect(included).toBeGreaterThanOrEqual(earliest ?? Infinity)
    }
  })
})

test('drops and bans an envelope whose sequence number another transaction used', async () => {
  const lost = await network.build(accounts.payer, pay())
  lose(lost, 'announcement')
  expect(await network.send(lost)).toBe('PENDING')
  const other = perturb(lost, { fee: 300 }, accounts.payer)
  expect(await network.send(other)).toBe('TRY_AGAIN_LATER')
  for (let ledger = 0; ledger < 4; ledger += 1) network.close()
  expect((await network.settle(other)).status).toBe('SUCCESS')
  expect(await network.send(lost)).toBe('TRY_AGAIN_LATER')
  for (let ledger = 0; ledger < 10; ledger += 1) network.close()
  expect(await network.send(lost)).toBe('txBadSeq')
})
