import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { openLedgerAccounts } from '#lib/relay/ledger-accounts.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** Accounts on a network whose latest known ledger is 10; `asked` lists the addresses read. */
function openAccounts() {
  const asked: string[] = []
  const network = { known: 10, shown: 10, isAway: false }
  const readAccount = async (address: string) => {
    asked.push(address)
    if (network.isAway) throw new Error('unavailable')
    return { account: undefined, latestLedger: network.shown }
  }
  const read = openLedgerAccounts({ readAccount, view: { latestLedger: () => network.known } }, ['A', 'B'])
  return { asked, network, read }
}

test('reads the channels with the first account of a ledger, and each once until the next ledger', async () => {
  const { asked, network, read } = openAccounts()
  await Promise.all([read('owner'), read('A')])
  await Promise.all([read('owner'), read('B')])
  expect(asked).toEqual(['A', 'B', 'owner'])
  network.known = network.shown = 11
  expect(await read('B')).toMatchObject({ latestLedger: 11 })
  expect(asked.slice(3)).toEqual(['A', 'B'])
})

test('shares a reading for at most a second, even if no later ledger is known', async () => {
  const { asked, network, read } = openAccounts()
  await read('A')
  vi.advanceTimersByTime(1_000)
  await read('A')
  expect(asked).toEqual(['A', 'B'])
  network.shown = 500
  vi.advanceTimersByTime(1)
  expect(await read('A')).toMatchObject({ latestLedger: 500 })
})

test('reads an account again if its entry came from a lagging node', async () => {
  const { asked, network, read } = openAccounts()
  network.shown = 9
  expect(await read('A')).toMatchObject({ latestLedger: 9 })
  network.shown = 10
  expect(await read('A')).toMatchObject({ latestLedger: 10 })
  await read('A')
  expect(asked.filter((address) => address === 'A')).toHaveLength(2)
})

test('reads an account again after a failure', async () => {
  const { network, read } = openAccounts()
  network.isAway = true
  await expect(read('A')).rejects.toThrow('unavailable')
  network.isAway = false
  expect(await read('A')).toMatchObject({ latestLedger: 10 })
})
