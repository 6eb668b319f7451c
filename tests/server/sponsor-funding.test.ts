import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Keypair } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { fundMeanwhile, fundSponsor } from '#lib/server/sponsor-funding.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import type { Sponsor } from '#lib/transfers/sponsor.ts'

const keypair = Keypair.fromRawEd25519Seed(new Uint8Array(32).fill(5))
const urls: (string | undefined)[] = []
const friendbot = createServer((request, response) => {
  urls.push(request.url)
  response.end('{}')
})
let url = ''
beforeAll(async () => {
  await new Promise<void>((resolve) => friendbot.listen(0, '127.0.0.1', () => resolve()))
  url = `http://127.0.0.1:${(friendbot.address() as AddressInfo).port}/friendbot`
})
afterAll(() => friendbot.close())
beforeEach(() => {
  urls.length = 0
})

/** A sponsor whose balance read fails `failures` times and then returns `balance`. */
function sponsorAfter(failures: number, balance: bigint, error: Error = new LedgerError('unavailable', 'not yet')) {
  let reads = 0
  const readBalance = async () => {
    reads += 1
    if (reads <= failures) throw error
    return balance
  }
  return { sponsor: { keypair, readBalance }, reads: () => reads }
}

test('funds an empty account once the embedded ledger responds', async () => {
  const { sponsor, reads } = sponsorAfter(3, 0n)
  await fundSponsor(sponsor, url, 1)
  expect([reads(), urls]).toEqual([4, [`/friendbot?addr=${keypair.publicKey()}`]])
})

test('does not fund an account with a balance', async () => {
  await fundSponsor(sponsorAfter(0, 1n).sponsor, url, 1)
  expect(urls).toEqual([])
})

test('gives up on a ledger that never responds, and on any other failure immediately', async () => {
  const never = sponsorAfter(Number.POSITIVE_INFINITY, 0n)
  await expect(fundSponsor(never.sponsor, url, 1)).rejects.toMatchObject({ code: 'unavailable' })
  expect(never.reads()).toBe(20)
  const broken = sponsorAfter(1, 0n, new Error('a bug'))
  await expect(fundSponsor(broken.sponsor, url, 1)).rejects.toThrow('a bug')
  expect(broken.reads()).toBe(1)
})

test('waits for the funding before it reads the balance', async () => {
  const { sponsor } = sponsorAfter(0, 0n)
  const funded = fundMeanwhile({ ...sponsor, readFloat: async () => BigInt(urls.length) } as unknown as Sponsor, url)
  expect(await Promise.all([funded.readFloat(7), funded.readFloat(8)])).toEqual([1n, 1n])
})
