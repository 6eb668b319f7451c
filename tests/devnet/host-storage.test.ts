import { Address, scValToNative, xdr } from '@stellar/stellar-sdk'
import { describe, expect, it } from 'vitest'
import { accountKey, contractData, contractDataKey, entryKey, instanceKey } from '#lib/devnet/host/entry-key.ts'
import { contractEvent } from '#lib/devnet/host/events.ts'
import { HostError } from '#lib/devnet/host/host-error.ts'
import { checkEvents, diskReadBytes, eventBytes, writeBytes } from '#lib/devnet/host/resources.ts'
import { openStorage } from '#lib/devnet/host/storage.ts'
import { confidentialAccountKey } from '#lib/devnet/host/token/account.ts'
import type { State } from '#lib/devnet/state/state.ts'
import { NETWORK_LIMITS } from '#lib/devnet/transaction/fees.ts'
import {
  apply,
  contractor,
  employer,
  enforce,
  label,
  ledger,
  openNetwork,
  type Request,
  record,
} from './host-fixture.ts'
import { depositRequest, fund, mergeRequest, registerRequest, transferRequest } from './host-payload.ts'

const DAY = 17_280

function recorded(build: (network: ReturnType<typeof openNetwork>) => Request) {
  const network = openNetwork()
  fund(network, employer, contractor)
  const request = build(network)
  const result = record(network, request)
  if (!result.ok) throw new Error(result.error)
  return { network, request, result }
}

describe('the footprint', () => {
  it('of a transfer has the two accounts in readWrite, sorted, and everything else in readOnly', () => {
    const { network, result } = recorded((on) => transferRequest(on, { from: employer, to: contractor }))
    const { token, verifier, auditor } = network.contracts
    const written = result.footprint.readWrite.map((key) => key.toXdr('base64'))
    expect(written).toEqual(
      [contractor, employer].map((holder) => confidentialAccountKey(token, holder.publicKey()).id),
    )
    const read = result.footprint.readOnly
    const ids = read.map((key) => key.toXdr('base64'))
    for (const contract of [token, verifier, auditor]) expect(ids).toContain(instanceKey(contract).id)
    expect(read.filter(({ type }) => type === 'contractCode')).toHaveLength(3)
    expect(read.filter(({ type }) => type === 'account')).toHaveLength(0)
  })

  const merge = () => recorded((on) => mergeRequest(on, employer))

  it('can contain unused keys', () => {
    const { network, request, result } = merge()
    const readOnly = [...result.footprint.readOnly, accountKey(contractor.publicKey()).key]
    const footprint = new xdr.LedgerFootprint({ ...result.footprint, readOnly })
    expect(label(enforce(network, request, { auth: result.auth, footprint }))).toBe('')
  })

  it('fails the call if it lacks a key', () => {
    const { network, request, result } = merge()
    for (const missing of result.footprint.readOnly) {
      const readOnly = result.footprint.readOnly.filter((key) => key !== missing)
      const footprint = new xdr.LedgerFootprint({ ...result.footprint, readOnly })
      const refused = enforce(network, request, { auth: result.auth, footprint })
      expect(label(refused)).toBe('Error(Storage, ExceededLimit)')
      expect(refused.ok ? '' : refused.code).toBe('trapped')
    }
  })

  it('fails the call if a written key is read-only', () => {
    const { network, request, result } = merge()
    const { readOnly, readWrite } = result.footprint
    const footprint = new xdr.LedgerFootprint({ readOnly: [...readOnly, ...readWrite], readWrite: [] })
    const refused = enforce(network, request, { auth: result.auth, footprint })
    expect(label(refused)).toBe('Error(Storage, InvalidAction)')
    expect(refused.ok ? '' : refused.code).toBe('trapped')
  })
})

describe('declared resources', () => {
  const deposit = () => {
    const { network, request, result } = recorded((on) => depositRequest(on, employer, contractor, 5n))
    const layer: State = network.state.fork()
    const { auth, footprint } = result
    const applied = enforce({ ...network, state: layer }, request, { auth, footprint })
    expect(label(applied)).toBe('')
    const resources = {
      instructions: result.instructions,
      diskReadBytes: diskReadBytes(network.state, footprint),
      writeBytes: writeBytes(layer, footprint),
    }
    return { network, request, given: { auth, footprint, resources } }
  }

  it('are sufficient when they equal the need', () => {
    const { network, request, given } = deposit()
    expect(given.resources.diskReadBytes).toBeGreaterThan(0)
    expect(label(enforce(network, request, given))).toBe('')
  })

  // stellar-core 28, transactions/InvokeHostFunctionOpFrame.cpp: meterDiskReadResource and recordStorageChanges
  it.each([
    ['instructions', undefined],
    ['diskReadBytes', 'operation byte-read resources exceeds amount specified'],
    ['writeBytes', 'operation byte-write resources exceeds amount specified'],
  ] as const)('are exceeded by one in %s, and report the used and declared amounts', (name, text) => {
    const { network, request, given } = deposit()
    const used = given.resources[name]
    const result = enforce(network, request, { ...given, resources: { ...given.resources, [name]: used - 1 } })
    expect(label(result)).toBe('Error(Budget, ExceededLimit)')
    expect(result.ok ? '' : result.code).toBe('resource-limit-exceeded')
    if (text === undefined) return
    const event = result.diagnostics.at(-1)?.event
    expect(event?.contractId).toBeNull()
    expect(event && scValToNative(event.body.value.data)).toEqual([text, BigInt(used), BigInt(used - 1)])
  })
})

// stellar-core 28, transactions/InvokeHostFunctionOpFrame.cpp: collectEvents
describe('events', () => {
  const bytes = (size: number) => xdr.ScVal.scvBytes(new Uint8Array(size))
  const eventOf = (size: number) => contractEvent(openNetwork().contracts.token, [], bytes(size))
  const room = NETWORK_LIMITS.eventBytes - eventBytes([eventOf(0)], bytes(0))
  const refusal = (event: number, returned: number) => {
    try {
      checkEvents([eventOf(event)], bytes(returned))
      return undefined
    } catch (cause) {
      if (!(cause instanceof HostError)) throw cause
      return [cause.label, cause.message, ...cause.values.map((value) => scValToNative(value))]
    }
  }

  it("can reach, but not exceed, the network's limit", () => {
    const limit = BigInt(NETWORK_LIMITS.eventBytes)
    const [label, event, returned] = [
      'Error(Budget, ExceededLimit)',
      'total events size exceeds network config maximum',
      'return value pushes events size above network config maximum',
    ]
    expect(refusal(room, 0)).toBeUndefined()
    expect(refusal(room, 4)).toEqual([label, returned, limit + 4n, limit])
    expect(refusal(room + 12, 4)).toEqual([label, event, limit + 4n, limit])
  })
})

describe('lifetimes', () => {
  it('extends a confidential account to 30 days on a read when less than 29 are left', () => {
    const network = openNetwork()
    apply(network, registerRequest(network, contractor, 21n))
    const { id } = confidentialAccountKey(network.contracts.token, contractor.publicKey())
    expect(network.state.get(id)?.liveUntil).toBe(ledger.sequence + 7 * DAY - 1)
    apply(network, depositRequest(network, employer, contractor, 1n))
    expect(network.state.get(id)?.liveUntil).toBe(ledger.sequence + 30 * DAY)
    apply(network, depositRequest(network, employer, contractor, 1n))
    expect(network.state.get(id)?.liveUntil).toBe(ledger.sequence + 30 * DAY)
  })

  it('restores an expired persistent entry when it is used', () => {
    const network = openNetwork()
    apply(network, registerRequest(network, contractor, 21n))
    const { id } = confidentialAccountKey(network.contracts.token, contractor.publicKey())
    const entry = network.state.get(id)
    if (!entry) throw new Error('no account')
    network.state.put({ ...entry, liveUntil: ledger.sequence - 1 })
    apply(network, mergeRequest(network, contractor))
    expect(network.state.get(id)?.liveUntil).toBe(ledger.sequence + 30 * DAY)
  })

  it('treats an expired temporary entry as absent, so that it can be created again', () => {
    const { state, contracts } = openNetwork()
    const key = contractDataKey(contracts.token, xdr.ScVal.scvSymbol('once'), 'temporary')
    const data = contractData(key, xdr.ScVal.scvVoid())
    openStorage(state, 100, 'record').put(key, data)
    expect(openStorage(state, 819, 'record').get(key)).toBeDefined()
    expect(openStorage(state, 820, 'record').get(key)).toBeUndefined()
    openStorage(state, 820, 'record').put(key, data)
    expect(state.get(key.id)?.liveUntil).toBe(820 + 719)
  })

  it("extends a lifetime to at most the network's maximum and never shortens it", () => {
    const { state, contracts } = openNetwork()
    const key = contractDataKey(contracts.token, xdr.ScVal.scvSymbol('kept'))
    const storage = openStorage(state, 100, 'record')
    storage.put(key, contractData(key, xdr.ScVal.scvVoid()))
    storage.extend(key, 10 ** 9, 10)
    expect(state.get(key.id)?.liveUntil).toBe(100 + 120_960 - 1)
    storage.extend(key, 10 ** 9, 10 ** 9)
    expect(state.get(key.id)?.liveUntil).toBe(100 + 3_110_400 - 1)
  })

  it('requires a writable key to remove an entry', () => {
    const { state } = openNetwork()
    const key = entryKey(accountKey(employer.publicKey()).key)
    const readOnly = new xdr.LedgerFootprint({ readOnly: [key.key], readWrite: [] })
    expect(() => openStorage(state, 100, readOnly).remove(key)).toThrow('read-only')
    openStorage(state, 100, 'record').remove(key)
    expect(state.get(key.id)).toBeUndefined()
  })
})

describe('other host functions', () => {
  it('are rejected', () => {
    const network = openNetwork()
    const request = mergeRequest(network, employer)
    const upload = xdr.HostFunction.hostFunctionTypeUploadContractWasm(new Uint8Array(8))
    expect(label(enforce(network, request, { hostFunction: upload }))).toBe('Error(Context, InvalidAction)')
  })

  it('rejects a call of an account', () => {
    const network = openNetwork()
    const request = mergeRequest(network, employer)
    const target = new xdr.InvokeContractArgs({
      contractAddress: new Address(employer.publicKey()).toScAddress(),
      functionName: 'merge',
      args: [],
    })
    const hostFunction = xdr.HostFunction.hostFunctionTypeInvokeContract(target)
    expect(label(enforce(network, request, { hostFunction }))).toBe('Error(Value, UnexpectedType)')
  })

  it('fails with Error(Storage, MissingValue) for a missing contract', () => {
    const network = openNetwork()
    network.state.remove(instanceKey(network.contracts.token).id)
    expect(label(enforce(network, mergeRequest(network, employer)))).toBe('Error(Storage, MissingValue)')
  })
})
