import { xdr } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type ReadAccount, readAccount } from '#lib/stellar/account.ts'
import { openNetwork } from '#lib/stellar/network.ts'
import { availableBalance, openFloat, readAvailableBalance } from '#lib/transfers/sponsor.ts'
import { accountEntry, type FakeRpc, type RpcFault, startFakeRpc } from '../support/fake-rpc.ts'
import { PASSPHRASE, sponsor } from '../support/inner-transaction.ts'
import { expectUnavailable } from './refused.ts'

const address = sponsor.publicKey()
const XLM = 10_000_000n

interface Holding {
  balance: bigint
  numSubEntries?: number
  selling?: bigint
  buying?: bigint
  numSponsoring?: number
  numSponsored?: number
}

/** With the extensions that the ledger writes: none, liabilities, or liabilities and sponsorships. */
function holding(given: Holding): xdr.AccountEntry {
  const { balance, numSubEntries = 0, selling, buying = 0n, numSponsoring, numSponsored } = given
  const sponsorships = numSponsoring !== undefined || numSponsored !== undefined
  const v2 = new xdr.AccountEntryExtensionV2({
    numSponsoring: numSponsoring ?? 0,
    numSponsored: numSponsored ?? 0,
    signerSponsoringIDs: [],
    ext: xdr.AccountEntryExtensionV2Ext.v0(),
  })
  const v1 = new xdr.AccountEntryExtensionV1({
    liabilities: new xdr.Liabilities({ buying, selling: selling ?? 0n }),
    ext: sponsorships ? xdr.AccountEntryExtensionV1Ext.v2(v2) : xdr.AccountEntryExtensionV1Ext.v0(),
  })
  const ext = sponsorships || selling !== undefined ? xdr.AccountEntryExt.v1(v1) : xdr.AccountEntryExt.v0()
  return new xdr.AccountEntry({ ...accountEntry(address), balance, numSubEntries, ext })
}

describe('availableBalance', () => {
  test.each<[string, Holding, bigint]>([
    ['two reserves of half a lumen stay', { balance: 100n * XLM }, 99n * XLM],
    ['a reserve for each entry below the account', { balance: 100n * XLM, numSubEntries: 3 }, 100n * XLM - 25_000_000n],
    ['what is on offer', { balance: 100n * XLM, selling: 7n }, 99n * XLM - 7n],
    ['what is bid for takes nothing', { balance: 100n * XLM, selling: 0n, buying: 50n * XLM }, 99n * XLM],
    ['a reserve for each entry paid for others', { balance: 100n * XLM, numSponsoring: 4 }, 97n * XLM],
    ['none for those that others pay', { balance: 100n * XLM, numSubEntries: 2, numSponsored: 4 }, 100n * XLM],
    [
      'all of these',
      { balance: 100n * XLM, numSubEntries: 3, selling: 7n, numSponsoring: 4, numSponsored: 2 },
      100n * XLM - 35_000_000n - 7n,
    ],
    ['exactly the reserve', { balance: XLM }, 0n],
    ['one stroop above it', { balance: XLM + 1n }, 1n],
    ['never less than nothing', { balance: XLM - 1n }, 0n],
    ['nothing at all', { balance: 0n, selling: 9n, numSponsoring: 1_000 }, 0n],
    ['more than a number holds', { balance: 2n ** 63n - 1n }, 2n ** 63n - 1n - XLM],
  ])('%s', (_, given, available) => {
    expect(availableBalance(holding(given))).toBe(available)
  })
})

let fake: FakeRpc
let read: ReadAccount
/** Sets how long the client waits for a response: briefly if none will arrive, otherwise without a limit. */
let waitAtMost: (ms: number) => void
beforeAll(async () => {
  fake = await startFakeRpc()
  const { server } = openNetwork({ name: 'local', passphrase: PASSPHRASE, rpcUrl: fake.url, pollMs: 50 })
  waitAtMost = (ms) => {
    server.httpClient.defaults.timeout = ms
  }
  read = (account) => readAccount(server, account)
})
afterAll(() => fake.close())
beforeEach(() => {
  fake.accounts.clear()
  fake.fault = undefined
  fake.calls = 0
  waitAtMost(60_000)
})

describe('readAvailableBalance', () => {
  test('reads the balance of an account, and of a missing one', async () => {
    expect(await readAvailableBalance(read, address)).toBe(0n)
    fake.accounts.set(address, holding({ balance: 5n * XLM }))
    expect(await readAvailableBalance(read, address)).toBe(4n * XLM)
  })

  const faults: RpcFault[] = ['http-503', 'json-rpc-error', 'hang', 'hang-up', 'headless', 'wrong-entry', 'wrong-type']
  test.each(faults)('rejects %s as a balance', async (fault) => {
    fake.accounts.set(address, holding({ balance: 5n * XLM }))
    fake.fault = fault
    if (fault === 'hang') waitAtMost(300)
    await expectUnavailable(() => readAvailableBalance(read, address))
  })
})

describe('openFloat', () => {
  test('reads the balance once per ledger for all concurrent requests', async () => {
    fake.accounts.set(address, holding({ balance: 5n * XLM }))
    const readFloat = openFloat(read, address)
    const all = await Promise.all(Array.from({ length: 20 }, () => readFloat(7)))
    expect(new Set(all)).toEqual(new Set([4n * XLM]))
    expect(await readFloat(7)).toBe(4n * XLM)
    expect(await readFloat(6)).toBe(4n * XLM)
    expect(fake.calls).toBe(1)
    fake.accounts.set(address, holding({ balance: 3n * XLM }))
    expect(await Promise.all([readFloat(8), readFloat(8), readFloat(7)])).toEqual([2n * XLM, 2n * XLM, 2n * XLM])
    expect(fake.calls).toBe(2)
  })

  test('replaces a newer reading only if the network was reset, not if a node lags', async () => {
    const readFloat = openFloat(read, address)
    const readAt = (ledger: number, balance: bigint) => {
      fake.latestLedger = ledger
      fake.accounts.set(address, holding({ balance }))
      return readFloat
    }
    expect(await readAt(40, 3n * XLM)(40)).toBe(2n * XLM)
    expect(await readAt(38, 5n * XLM)(41)).toBe(2n * XLM)
    expect(await readAt(42, 4n * XLM)(42)).toBe(3n * XLM)
    expect(await readAt(9, 9n * XLM)(9)).toBe(8n * XLM)
    fake.latestLedger = 7
  })

  test('fails all waiting requests if a reading fails, and does not cache the failure', async () => {
    fake.accounts.set(address, holding({ balance: 5n * XLM }))
    fake.fault = 'http-503'
    const readFloat = openFloat(read, address)
    const [first, second] = [readFloat(7), readFloat(7)]
    await expectUnavailable(() => first)
    await expectUnavailable(() => second)
    expect(fake.calls).toBe(1)
    fake.fault = undefined
    expect(await readFloat(7)).toBe(4n * XLM)
    expect(fake.calls).toBe(2)
  })

  test('keeps a newer reading when an older one fails late', async () => {
    fake.accounts.set(address, holding({ balance: 5n * XLM }))
    const readFloat = openFloat(read, address)
    fake.fault = 'hang'
    waitAtMost(2_000)
    const late = readFloat(7)
    while (fake.calls < 1) await new Promise((resolve) => setTimeout(resolve, 5))
    fake.fault = undefined
    waitAtMost(60_000)
    expect(await readFloat(8)).toBe(4n * XLM)
    await expectUnavailable(() => late)
    expect(await readFloat(8)).toBe(4n * XLM)
    expect(fake.calls).toBe(2)
  })
})
