import { Address, nativeToScVal, xdr } from '@stellar/stellar-sdk'
import { describe, expect, test } from 'vitest'
import { accountKey, readAccountEntry } from '#lib/stellar/confidential-token.ts'
import { hex, holder, keypair, TOKEN } from './fixtures.ts'

const { keys } = holder('contractor')
const address = keypair('contractor').publicKey()
const FIELDS = {
  auditor_id: xdr.ScVal.scvU32(3),
  receiving_commitment: xdr.ScVal.scvBytes(new Uint8Array(64)),
  spendable_commitment: xdr.ScVal.scvBytes(new Uint8Array(64).fill(2)),
  spending_public_key: xdr.ScVal.scvBytes(keys.spendingKey),
  viewing_public_key: xdr.ScVal.scvBytes(keys.viewingKey),
}

const map = (fields: Record<string, xdr.ScVal>) =>
  xdr.ScVal.scvMap(
    Object.entries(fields).map(([name, val]) => new xdr.ScMapEntry({ key: xdr.ScVal.scvSymbol(name), val })),
  )

const entry = (val: xdr.ScVal) =>
  xdr.LedgerEntryData.contractData(
    new xdr.ContractDataEntry({
      ext: xdr.ExtensionPoint.v0(),
      contract: new Address(TOKEN).toScAddress(),
      key: xdr.ScVal.scvVec([xdr.ScVal.scvSymbol('Account'), new Address(address).toScVal()]),
      durability: xdr.ContractDataDurability.persistent,
      val,
    }),
  )

test("the key has the size of the network's keys, for accounts and for contracts", () => {
  expect(accountKey(TOKEN, address).toXdr()).toHaveLength(116)
  expect(accountKey(TOKEN, address).toXdr('base64')).toHaveLength(156)
  expect(accountKey(TOKEN, TOKEN).toXdr('base64')).not.toBe(accountKey(TOKEN, address).toXdr('base64'))
})

test('the key names contract, "Account" and address, and is persistent', () => {
  const key = accountKey(TOKEN, address)
  if (key.type !== 'contractData' || key.contractData.key.type !== 'scvVec') throw new Error('another kind of key')
  expect(Address.fromScAddress(key.contractData.contract).toString()).toBe(TOKEN)
  expect(key.contractData.durability).toBe(xdr.ContractDataDurability.persistent)
  expect(key.contractData.key.value?.[0]?.toXdr('base64')).toBe(xdr.ScVal.scvSymbol('Account').toXdr('base64'))
})

describe('an account entry', () => {
  test('of interface 0.8.0, 440 bytes, is decoded', () => {
    expect(map(FIELDS).toXdr()).toHaveLength(440)
    const read = readAccountEntry(entry(map(FIELDS)))
    expect(read).toMatchObject({ auditorId: 3 })
    expect(hex(read.viewingKey)).toBe(hex(keys.viewingKey))
    expect(hex(read.spendingKey ?? new Uint8Array())).toBe(hex(keys.spendingKey))
    expect(hex(read.spendable ?? new Uint8Array())).toBe('02'.repeat(64))
    expect(hex(read.receiving ?? new Uint8Array())).toBe('00'.repeat(64))
  })

  test('of the first variant is decoded by its older names', () => {
    const { spending_public_key, spendable_commitment, receiving_commitment, ...stable } = FIELDS
    const read = readAccountEntry(
      entry(
        map({
          ...stable,
          spending_key: spending_public_key,
          spendable_balance: spendable_commitment,
          receiving_balance: receiving_commitment,
        }),
      ),
    )
    expect(hex(read.spendable ?? new Uint8Array())).toBe('02'.repeat(64))
    expect(hex(read.spendingKey ?? new Uint8Array())).toBe(hex(keys.spendingKey))
  })

  test('with unknown names still yields viewing key and auditor', () => {
    const { auditor_id, viewing_public_key } = FIELDS
    const read = readAccountEntry(entry(map({ auditor_id, viewing_public_key })))
    expect(read).toMatchObject({ auditorId: 3, spendingKey: undefined, spendable: undefined, receiving: undefined })
  })

  const { viewing_public_key, auditor_id, ...others } = FIELDS
  test.each([
    ['no viewing key', map({ ...others, auditor_id })],
    ['no auditor', map({ ...others, viewing_public_key })],
    ['a viewing key of 32 bytes', map({ ...FIELDS, viewing_public_key: xdr.ScVal.scvBytes(new Uint8Array(32)) })],
    ['an auditor by name', map({ ...FIELDS, auditor_id: xdr.ScVal.scvString('three') })],
    ['a balance in place of it', nativeToScVal(5n, { type: 'i128' })],
    ['nothing in it', map({})],
  ])('with %s belongs to another contract, which says nothing about the address', (_, val) => {
    expect(() => readAccountEntry(entry(val))).toThrowError(expect.objectContaining({ code: 'foreign-contract' }))
  })
})
