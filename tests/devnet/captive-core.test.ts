import type { Transaction } from '@stellar/stellar-sdk'
import { expect, test } from 'vitest'
import { foundAccounts, hashOf, pay, perturb, shareNetwork } from './network-fixture.ts'

/** number of lost announcements by hash */
const losses = new Map<string, number>()
const losesAnnouncement = ({ hash, attempt }: { hash: string; attempt: number }) => attempt <= (losses.get(hash) ?? 0)

const network = shareNetwork({ losesAnnouncement })
const accounts = foundAccounts(network, 'payer')

const lose = (transaction: Transaction, announcements = 1) => void losses.set(hashOf(transaction), announcements)

/** Submits before each of the next `ledgers` closes; the statuses, and the ledger of inclusion counted from the first. */
async function resubmit(transaction: Transaction, ledgers: number, isDue = (_ledger: number) => true) {
  const statuses: string[] = []
  for (let ledger = 1; ledger <= ledgers; ledger += 1) {
    if (isDue(ledger)) statuses.push(await network.send(transaction))
    network.close()
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

test('keeps an unannounced envelope out for four ledgers in the queue and ten of ban', async () => {
  const transaction = await network.build(accounts.payer, pay())
  lose(transaction)
  const { statuses, included } = await resubmit(transaction, 30)
  expect(statuses).toEqual(['PENDING', ...times(3, 'DUPLICATE'), ...times(10, 'TRY_AGAIN_LATER'), 'PENDING'])
  expect(included).toBe(15)
})

test('adds fourteen ledgers for each lost announcement', async () => {
  const transaction = await network.build(accounts.payer, pay())
  lose(transaction, 3)
  expect((await resubmit(transaction, 60)).included).toBe(43)
})

test('never includes a lost envelope that is not resubmitted', async () => {
  const transaction = await network.build(accounts.payer, pay())
  lose(transaction)
  expect((await resubmit(transaction, 40, (ledger) => ledger === 1)).included).toBeUndefined()
})

test('includes a lost envelope after one resubmission once the ban has ended', async () => {
  const transaction = await network.build(accounts.payer, pay())
  lose(transaction)
  const { statuses, included } = await resubmit(transaction, 40, (ledger) => ledger === 1 || ledger === 20)
  expect({ statuses, included }).toEqual({ statuses: ['PENDING', 'PENDING'], included: 20 })
})

test('drops and bans an envelope whose sequence number another transaction used', async () => {
  const lost = await network.build(accounts.payer, pay())
  lose(lost)
  expect(await network.send(lost)).toBe('PENDING')
  const other = perturb(lost, { fee: 300 }, accounts.payer)
  expect(await network.send(other)).toBe('TRY_AGAIN_LATER')
  for (let ledger = 0; ledger < 4; ledger += 1) network.close()
  expect((await network.settle(other)).status).toBe('SUCCESS')
  expect(await network.send(lost)).toBe('TRY_AGAIN_LATER')
  for (let ledger = 0; ledger < 10; ledger += 1) network.close()
  expect(await network.send(lost)).toBe('txBadSeq')
})
