import { Account, Asset, Memo, Operation, rpc, scValToNative, TransactionBuilder, xdr } from '@stellar/stellar-sdk'
import { beforeEach, describe, expect, it } from 'vitest'
import { eventBytes } from '#lib/devnet/host/resources.ts'
import { type SimulationParams, simulateTransaction } from '#lib/devnet/rpc/simulation.ts'
import { eventsFee, nonRefundableFee, rentFee } from '#lib/devnet/transaction/fees.ts'
import {
  apply,
  contractor,
  employer,
  enforce,
  g,
  hostFunctionOf,
  issuer,
  label,
  ledger,
  type Network,
  openNetwork,
  passphrase,
  type Request,
  record,
  stranger,
} from './host-fixture.ts'
import {
  depositRequest,
  fund,
  mergeRequest,
  registerRequest,
  transferRequest,
  withdrawRequest,
} from './host-payload.ts'

const WITHOUT_ACCOUNT = 'GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF'

/** Employer and contractor are registered; the employer has a spendable balance. */
let network: Network
beforeEach(() => {
  network = openNetwork()
  fund(network, employer, contractor)
})

function envelope(
  request: Request,
  change: { source?: string; auth?: xdr.SorobanAuthorizationEntry[]; memo?: Memo } = {},
) {
  const source = new Account(change.source ?? request.source.publicKey(), '0')
  const builder = new TransactionBuilder(source, { fee: '100', networkPassphrase: passphrase })
    .addOperation(Operation.invokeHostFunction({ func: hostFunctionOf(request), auth: change.auth ?? [] }))
    .setTimeout(0)
  return (change.memo ? builder.addMemo(change.memo) : builder).build()
}

function simulate(params: SimulationParams): rpc.Api.SimulateTransactionResponse {
  const body = simulateTransaction({ state: network.state, ledger, params })
  // Clients read a serialized response.
  const raw = JSON.parse(JSON.stringify({ ...body, latestLedger: ledger.sequence }))
  return rpc.parseRawSimulation(raw)
}

function success(params: SimulationParams): rpc.Api.SimulateTransactionSuccessResponse {
  const answer = simulate(params)
  if (!rpc.Api.isSimulationSuccess(answer)) throw new Error(JSON.stringify(answer))
  return answer
}

function errorOf(params: SimulationParams): string {
  const answer = simulate(params)
  return rpc.Api.isSimulationError(answer) ? answer.error : ''
}

const transactionOf = (request: Request) => envelope(request).toXdr()
const transfer = (proof?: Uint8Array) =>
  transferRequest(network, { from: employer, to: contractor, ...(proof && { proof }) })

describe('a simulated call', () => {
  it('returns transaction data and auth and leaves the state unchanged', () => {
    const request = transfer()
    const before = network.state.changes()
    const answer = success({ transaction: transactionOf(request) })
    expect(network.state.changes()).toEqual(before)
    expect(answer.result?.retval.type).toBe('scvVoid')
    expect(answer.result?.auth).toHaveLength(1)
    expect(answer.stateChanges?.map(({ type }) => type)).toEqual(['updated', 'updated'])
    expect(answer.events.map(({ event }) => scValToNative(event.body.value.topics[0] ?? xdr.ScVal.scvVoid()))).toEqual([
      'transfer',
    ])
  })

  it('returns the minimum resource fee, which is close to that of the released contract', () => {
    const fee = () => {
      const transaction = transactionOf(transfer())
      const { transactionData, minResourceFee } = success({ transaction })
      const { resourceFee, resources } = transactionData.build()
      expect(minResourceFee).toBe(String(resourceFee))
      expect(Math.abs(resources.instructions / 102_800_000 - 1)).toBeLessThan(0.01)
      return Number(resourceFee)
    }
    // The recipient's entry is new, so its first reader pays for 30 days.
    expect(Math.abs(fee() / 456_342 - 1)).toBeLessThan(0.01)
    apply(network, depositRequest(network, employer, contractor, 1n))
    expect(Math.abs(fee() / 244_749 - 1)).toBeLessThan(0.01)
  })

  it('names the resource fees that the released contracts need', () => {
    const fresh = openNetwork()
    apply(fresh, registerRequest(fresh, stranger, 31n))
    apply(network, depositRequest(network, employer, contractor, 1n))
    const fees: [Network, Request, number][] = [
      [fresh, registerRequest(fresh, employer, 32n), 295_964],
      [fresh, depositRequest(fresh, issuer, stranger, 1_000n), 358_882],
      [network, depositRequest(network, issuer, contractor, 0n), 24_474],
      [network, depositRequest(network, employer, contractor, 50n), 39_252],
      [network, mergeRequest(network, contractor), 17_925],
      [network, withdrawRequest(network, { from: employer, to: contractor, value: 250n }), 244_872],
    ]
    for (const [on, request, measured] of fees) {
      network = on
      const { minResourceFee } = success({ transaction: transactionOf(request) })
      expect([request.name, Math.abs(Number(minResourceFee) / measured - 1) < 0.005]).toEqual([request.name, true])
    }
  })

  it('returns resources that cover the assembled transaction with twenty signatures', () => {
    const request = depositRequest(network, employer, contractor, 5n)
    const tx = envelope(request)
    const answer = success({ transaction: tx.toXdr() })
    const assembled = rpc.assembleTransaction(tx, answer).build()
    const bytes = Buffer.from(assembled.toXdr(), 'base64').length + 20 * 72
    const { resources, resourceFee } = answer.transactionData.build()
    const layer = network.state.fork()
    const run = enforce({ ...network, state: layer }, request, {
      auth: answer.result?.auth ?? [],
      footprint: resources.footprint,
      resources,
    })
    if (!run.ok) throw new Error(run.error)
    const refundable = rentFee(layer.changes(), ledger.sequence) + eventsFee(eventBytes(run.events, run.returnValue))
    expect(refundable).toBeGreaterThan(0n)
    expect(resourceFee).toBeGreaterThanOrEqual(nonRefundableFee(resources, bytes) + refundable)
  })

  it('returns an empty readWrite and no auth for a read-only call', () => {
    const request = { ...mergeRequest(network, employer), name: 'confidential_balance' }
    const transaction = envelope(request, { source: WITHOUT_ACCOUNT }).toXdr()
    const answer = success({ transaction })
    const { footprint, writeBytes, diskReadBytes } = answer.transactionData.build().resources
    expect(footprint.readWrite).toEqual([])
    expect([writeBytes, diskReadBytes]).toEqual([0, 0])
    expect(answer.result?.auth).toEqual([])
    expect(answer.stateChanges).toBeUndefined()
    expect(scValToNative(answer.result?.retval ?? xdr.ScVal.scvVoid())).toHaveProperty('viewing_public_key')
  })

  it('returns the account that a call would create', () => {
    const answer = success({ transaction: transactionOf(registerRequest(network, stranger, 5n)) })
    const [change] = answer.stateChanges ?? []
    expect(change?.type).toBe('created')
    expect(change?.before).toBeNull()
    expect(change?.after?.lastModifiedLedgerSeq).toBe(0)
    expect(change?.after?.data.type).toBe('contractData')
    const { resources } = answer.transactionData.build()
    expect(resources.writeBytes).toBe(change?.after?.toXdr().length)
  })

  it('ignores account, sequence number and signatures, and simulates inside a fee bump', () => {
    const request = transfer()
    const tx = envelope(request)
    const bump = TransactionBuilder.buildFeeBumpTransaction(stranger, '100', tx, passphrase)
    const answer = success({ transaction: bump.toXdr() })
    expect(answer.result?.auth[0]?.credentials.type).toBe('sorobanCredentialsSourceAccount')
  })

  it.each([
    [undefined, 50_000],
    [10_000, 50_000],
    [2_000_000, 2_000_000],
  ])('adds the requested leeway (%s)', (instructionLeeway, added) => {
    const request = { ...mergeRequest(network, employer), name: 'is_spender', args: [g(employer), g(contractor)] }
    const resourceConfig = instructionLeeway === undefined ? {} : { instructionLeeway }
    const answer = success({ transaction: transactionOf(request), resourceConfig })
    expect(answer.transactionData.build().resources.instructions).toBe(600_000 + added)
  })
})

describe('recorded authorization', () => {
  const merge = (): Request => ({ ...mergeRequest(network, contractor), source: employer })

  it.each([
    [undefined, 'sorobanCredentialsAddress'],
    [true, 'sorobanCredentialsAddressV2'],
    [false, 'sorobanCredentialsAddress'],
  ])('is recorded with the requested credentials (%s)', (useUpgradedAuth, type) => {
    const params = useUpgradedAuth === undefined ? {} : { useUpgradedAuth }
    const answer = success({ transaction: transactionOf(merge()), ...params })
    expect(answer.result?.auth.map(({ credentials }) => credentials.type)).toEqual([type])
    const { readWrite } = answer.transactionData.build().resources.footprint
    expect(readWrite).toHaveLength(2)
  })

  it('is enforced if the operation has auth entries', () => {
    const request = merge()
    const recorded = record(network, request)
    if (!recorded.ok) throw new Error(recorded.error)
    const transaction = envelope(request, { auth: recorded.auth }).toXdr()
    expect(errorOf({ transaction })).toMatch(/^HostError: Error\(Auth, InvalidAction\)\n\nEvent log/)
    const own = { ...request, source: contractor }
    const mine = record(network, own)
    const signed = envelope(own, { auth: mine.ok ? mine.auth : [] }).toXdr()
    expect(success({ transaction: signed }).result?.auth).toHaveLength(1)
    expect(success({ transaction: signed, authMode: 'enforce' }).result?.auth).toHaveLength(1)
  })

  it('follows authMode', () => {
    const request = merge()
    const transaction = transactionOf(request)
    expect(errorOf({ transaction, authMode: 'enforce' })).toContain('Error(Auth, InvalidAction)')
    expect(errorOf({ transaction, authMode: 'record' })).toBe('')
    expect(errorOf({ transaction, authMode: 'record_allow_nonroot' })).toBe('')
    expect(errorOf({ transaction, authMode: 'guess' })).toBe(
      "optional 'authMode' must be one of enforce,record,record_allow_nonroot when included",
    )
    const recorded = record(network, request)
    const carrying = envelope(request, { auth: recorded.ok ? recorded.auth : [] }).toXdr()
    expect(errorOf({ transaction: carrying, authMode: 'record' })).toBe(
      "cannot set authMode to 'record' with an auth footprint",
    )
  })
})

describe('a simulation that fails', () => {
  it('prints the error and its events like the host', () => {
    const request = transfer(new Uint8Array(14_592))
    const answer = simulate({ transaction: transactionOf(request) })
    if (!rpc.Api.isSimulationError(answer)) throw new Error('succeeded')
    const { token } = network.contracts
    expect(answer.error).toBe(
      `HostError: Error(Contract, #3506)\n\nEvent log (newest first):\n   0: [Diagnostic Event] contract:${token}, topics:[error, Error(Contract, #3506)], data:"invalid proof"\n`,
    )
    expect(answer.events).toHaveLength(1)
  })

  it('lists an error event for each call, newest first', () => {
    const error = errorOf({ transaction: transactionOf(depositRequest(network, stranger, contractor, 1n)) })
    const { token, underlying } = network.contracts
    expect(error.split('\n').slice(3, 5)).toEqual([
      `   0: [Diagnostic Event] contract:${token}, topics:[error, Error(Contract, #13)], data:"escalating error to VM trap from failed host function call: call"`,
      `   1: [Diagnostic Event] contract:${underlying}, topics:[error, Error(Contract, #13)], data:["trustline entry is missing for account", ${stranger.publicKey()}]`,
    ])
  })

  it('marks rolled-back events as not emitted', () => {
    const tight = { instructions: 7_000_000, diskReadBytes: 10_000, writeBytes: 1 }
    const deposit = depositRequest(network, employer, contractor, 5n)
    const recorded = record(network, deposit)
    const result = enforce(network, deposit, { auth: recorded.ok ? recorded.auth : [], resources: tight })
    if (result.ok) throw new Error('succeeded')
    expect(result.error).toContain('[Failed Contract Event (not emitted)]')
    expect(result.diagnostics.some(({ inSuccessfulContractCall }) => inSuccessfulContractCall)).toBe(false)
  })

  const merge = () => mergeRequest(network, employer)
  const classic = Operation.payment({ destination: WITHOUT_ACCOUNT, asset: Asset.native(), amount: '1' })
  const build = (operations: xdr.Operation[]) => {
    const source = new Account(WITHOUT_ACCOUNT, '0')
    const builder = new TransactionBuilder(source, { fee: '100', networkPassphrase: passphrase }).setTimeout(0)
    for (const operation of operations) builder.addOperation(operation)
    return builder.build().toXdr()
  }
  const call = () => Operation.invokeHostFunction({ func: hostFunctionOf(merge()), auth: [] })
  it.each<[string, () => string, string]>([
    ['noise', () => 'AAAA', 'Could not unmarshal transaction'],
    ['no base64', () => '!', 'Could not unmarshal transaction'],
    ['two operations', () => build([call(), call()]), 'Transaction contains more than one operation'],
    ['a payment', () => build([classic]), 'transaction contains unsupported operation type: OperationTypePayment'],
    [
      'a memo',
      () => envelope(merge(), { memo: Memo.text('salary') }).toXdr(),
      'Transaction contains a memo. Soroban transactions do not support memos.',
    ],
  ])('rejects %s with an error', (_, transaction, error) => {
    expect(errorOf({ transaction: transaction() })).toBe(error)
  })
})

it('returns a footprint and an entry that are sufficient to apply the call', () => {
  const request = transfer()
  const { transactionData, result } = success({ transaction: transactionOf(request) })
  const { resources } = transactionData.build()
  const applied = enforce(network, request, { auth: result?.auth ?? [], footprint: resources.footprint, resources })
  expect(label(applied)).toBe('')
})
