import { Address, SorobanDataBuilder, StrKey, xdr } from '@stellar/stellar-sdk'
import { describe, expect, test } from 'vitest'
import { accountKey } from '#lib/stellar/confidential-token.ts'
import { redirectResources } from '#lib/wallet/footprint.ts'
import { keypair, TOKEN } from './fixtures.ts'

const employer = keypair('employer').publicKey()
const first = keypair('first').publicKey()
const other = keypair('other').publicKey()
const registry = StrKey.encodeContract(new Uint8Array(32).fill(8))

const entry = (contract: string, ...key: xdr.ScVal[]) =>
  xdr.LedgerKey.contractData(
    new xdr.LedgerKeyContractData({
      contract: new Address(contract).toScAddress(),
      key: xdr.ScVal.scvVec(key),
      durability: xdr.ContractDataDurability.persistent,
    }),
  )
const auditorKey = (id: number) => entry(registry, xdr.ScVal.scvSymbol('Key'), xdr.ScVal.scvU32(id))
const allowed = (address: string) => entry(registry, new Address(address).toScVal(), xdr.ScVal.scvSymbol('Allowed'))

function simulated(to: string) {
  const writes = [accountKey(TOKEN, employer), accountKey(TOKEN, to)]
  return new SorobanDataBuilder()
    .setResources(1_000_000, 2_000, 3_000)
    .setResourceFee(50_000)
    .setFootprint([auditorKey(0), allowed(to)], writes)
    .build()
}

const names = (keys: readonly xdr.LedgerKey[]) => keys.map((key) => key.toXdr('base64')).toSorted()

describe('the resources of a transfer to another recipient', () => {
  test('name the other wherever they named the first, and nothing else changes', () => {
    const data = redirectResources(simulated(first), { first, other }, [], 0n)
    const { footprint, ...resources } = data.resources
    expect(names(footprint.readWrite)).toEqual(names([accountKey(TOKEN, employer), accountKey(TOKEN, other)]))
    expect(names(footprint.readOnly)).toEqual(names([auditorKey(0), allowed(other)]))
    expect(resources).toMatchObject({ instructions: 1_000_000, diskReadBytes: 2_000, writeBytes: 3_000 })
    expect(data.resourceFee).toBe(50_000n)
  })

  test('name a contract in place of an account, whose address is of another length', () => {
    const data = redirectResources(simulated(first), { first, other: TOKEN }, [], 0n)
    expect(names(data.resources.footprint.readWrite)).toEqual(
      names([accountKey(TOKEN, employer), accountKey(TOKEN, TOKEN)]),
    )
  })

  test('name nothing twice when the other is the sender, the first again, or already written', () => {
    const own = redirectResources(simulated(first), { first, other: employer }, [], 0n)
    expect(names(own.resources.footprint.readWrite)).toEqual(names([accountKey(TOKEN, employer)]))
    const same = redirectResources(simulated(first), { first, other: first }, [], 0n)
    expect(same.toXdr('base64')).toBe(simulated(first).toXdr('base64'))
    const reading = [auditorKey(0), accountKey(TOKEN, other)]
    const read = redirectResources(simulated(first), { first, other }, reading, 0n)
    expect(names(read.resources.footprint.readOnly)).toEqual(names([auditorKey(0), allowed(other)]))
  })

  test('read another auditor, and pay the margin', () => {
    const data = redirectResources(simulated(first), { first, other }, [auditorKey(1)], 300n)
    expect(names(data.resources.footprint.readOnly)).toEqual(names([auditorKey(0), auditorKey(1), allowed(other)]))
    expect(data.resourceFee).toBe(50_300n)
  })

  test('restore nothing: what was archived, the first has restored', () => {
    const { resources, resourceFee } = simulated(first)
    const restoring = new xdr.SorobanTransactionData({
      ext: xdr.SorobanTransactionDataExt.resourceExt(new xdr.SorobanResourcesExtV0({ archivedSorobanEntries: [1] })),
      resources,
      resourceFee,
    })
    expect(redirectResources(restoring, { first, other }, [], 0n).ext.type).toBe('v0')
  })
})
