import { xdr } from '@stellar/stellar-sdk'
import { describe, expect, it } from 'vitest'
import { accountKey, contractData, contractDataKey } from '#lib/devnet/host/entry-key.ts'
import type { StoredEntry } from '#lib/devnet/state/state.ts'
import { entryBytes, eventsFee, nonRefundableFee, rentFee } from '#lib/devnet/transaction/fees.ts'
import { employer, openNetwork } from './host-fixture.ts'

const token = openNetwork().contracts.token
const dataKey = (name: string, durability: 'persistent' | 'temporary' = 'persistent') =>
  contractDataKey(token, xdr.ScVal.scvSymbol(name), durability)

function resources(
  numbers: { instructions: number; diskReadBytes?: number; writeBytes?: number },
  keys: [number, number],
) {
  const [accounts, writes] = keys
  return new xdr.SorobanResources({
    footprint: new xdr.LedgerFootprint({
      readOnly: Array.from({ length: accounts }, () => accountKey(employer.publicKey()).key),
      readWrite: Array.from({ length: writes }, (_, index) => dataKey(`w${index}`).key),
    }),
    diskReadBytes: 0,
    writeBytes: 0,
    ...numbers,
  })
}

function entry(name: string, size: number, liveUntil: number, durability?: 'temporary'): StoredEntry {
  const key = dataKey(name, durability)
  return { key: key.id, data: contractData(key, xdr.ScVal.scvBytes(new Uint8Array(size))), lastModified: 1, liveUntil }
}

describe('the non-refundable fee', () => {
  it('is 90,460 for 100 M instructions, two writes of 1 KB and a transaction of 3 KB', () => {
    const declared = resources({ instructions: 100_000_000, writeBytes: 1_024 }, [0, 2])
    expect(nonRefundableFee(declared, 3_072)).toBe(90_460n)
  })

  it('is about 226,000 for 200 M instructions, one account, four writes of 2 KB and a transaction of 16 KB', () => {
    const declared = resources({ instructions: 200_000_000, diskReadBytes: 92, writeBytes: 2_048 }, [1, 4])
    expect(nonRefundableFee(declared, 16_384)).toBe(225_984n)
  })

  it('rounds up each part', () => {
    expect(nonRefundableFee(resources({ instructions: 1 }, [0, 0]), 0)).toBe(1n + 1_190n)
    expect(nonRefundableFee(resources({ instructions: 0, diskReadBytes: 1, writeBytes: 1 }, [0, 0]), 0)).toBe(1_192n)
  })

  it('charges classic keys of both halves as disk reads, and contract data as none', () => {
    const none = nonRefundableFee(resources({ instructions: 0 }, [0, 0]), 0)
    expect(nonRefundableFee(resources({ instructions: 0 }, [3, 0]), 0) - none).toBe(3n * 1_563n)
    expect(nonRefundableFee(resources({ instructions: 0 }, [0, 3]), 0) - none).toBe(3n * 2_500n)
  })
})

it('charges 5,000 stroops a kilobyte for events, rounded up', () => {
  expect([eventsFee(0), eventsFee(1), eventsFee(1_024), eventsFee(1_025)]).toEqual([0n, 5n, 5_000n, 5_005n])
})

describe('rent', () => {
  // 1,000 stroops a kilobyte for 1,215 ledgers, plus one write and 48 bytes for the TTL entry.
  const perEntry = 2_500n + 42n
  const expected = (bytes: number, ledgers: number, denominator = 1_215n) => {
    const divisor = 1_024n * denominator
    return (BigInt(bytes) * 1_000n * BigInt(ledgers) + divisor - 1n) / divisor
  }

  it('charges a new entry for its whole lifetime, including this ledger', () => {
    const after = entry('new', 300, 100 + 120_960 - 1)
    const fee = rentFee([{ key: after.key, before: undefined, after }], 100)
    expect(fee).toBe(expected(entryBytes(after), 120_960) + perEntry)
  })

  it('charges half for a temporary entry', () => {
    const after = entry('new', 300, 819, 'temporary')
    const fee = rentFee([{ key: after.key, before: undefined, after }], 100)
    expect(fee).toBe(expected(entryBytes(after), 720, 2_430n) + perEntry)
  })

  it('charges only the extension of a lifetime', () => {
    const before = entry('old', 300, 500)
    const fee = rentFee([{ key: before.key, before, after: { ...before, liveUntil: 700 } }], 100)
    expect(fee).toBe(expected(entryBytes(before), 200) + perEntry)
  })

  it('charges growth for the ledgers already paid for', () => {
    const before = entry('old', 300, 500)
    const after = entry('old', 340, 500)
    expect(rentFee([{ key: before.key, before, after }], 100)).toBe(expected(40, 401))
  })

  it('charges an expired entry like a new one', () => {
    const before = entry('old', 300, 50)
    const after = entry('old', 300, 199)
    expect(rentFee([{ key: before.key, before, after }], 100)).toBe(expected(entryBytes(after), 100) + perEntry)
  })

  it('charges nothing for a smaller value, a removed entry or an account', () => {
    const before = entry('old', 300, 500)
    const after = entry('old', 100, 500)
    expect(rentFee([{ key: before.key, before, after }], 100)).toBe(0n)
    expect(rentFee([{ key: before.key, before, after: undefined }], 100)).toBe(0n)
    const { state } = openNetwork()
    const { id } = accountKey(employer.publicKey())
    expect(rentFee([{ key: id, before: undefined, after: state.get(id) }], 100)).toBe(0n)
  })

  it('rounds up the TTL fee of several entries once', () => {
    const entries = [entry('a', 10, 100), entry('b', 10, 100), entry('c', 10, 100)]
    const changes = entries.map((after) => ({ key: after.key, before: undefined, after }))
    const rents = entries.reduce((sum, after) => sum + expected(entryBytes(after), 1), 0n)
    expect(rentFee(changes, 100)).toBe(rents + 3n * 2_500n + 124n)
  })
})
