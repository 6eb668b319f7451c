import { nativeToScVal, scValToNative, xdr } from '@stellar/stellar-sdk'
import { beforeEach, describe, expect, it } from 'vitest'
import { instanceKey } from '#lib/devnet/host/entry-key.ts'
import { confidentialAccountKey } from '#lib/devnet/host/token/account.ts'
import { standIn } from '#lib/prover/stand-in.ts'
import { encodeCallData } from '#lib/wallet/call-data.ts'
import { FIELD } from '#lib/wallet/grumpkin.ts'
import {
  amount,
  apply,
  c,
  contractor,
  employer,
  failure,
  g,
  issuer,
  label,
  ledger,
  type Network,
  number,
  openNetwork,
  point,
  type Request,
  record,
  stranger,
} from './host-fixture.ts'
import {
  bytes,
  confidentialBalance,
  depositRequest,
  fund,
  keysOf,
  mergeRequest,
  type Payload,
  proveTransfer,
  registerRequest,
  transferPayload,
  transferRequest,
  withdrawPayload,
  withdrawRequest,
} from './host-payload.ts'

const ZERO = '00'.repeat(64)
const hex = (value: Uint8Array | undefined) => Buffer.from(value ?? []).toString('hex')

/** Employer and contractor are registered; the employer has 1,000 base units to spend. */
let network: Network
beforeEach(() => {
  network = openNetwork()
  fund(network, employer, contractor)
})

const commitmentsOf = (account: Parameters<typeof confidentialBalance>[1]) => {
  const { spendable_commitment, receiving_commitment } = confidentialBalance(network, account)
  return [hex(spendable_commitment), hex(receiving_commitment)]
}
const transfer = (given: Partial<Parameters<typeof transferRequest>[1]> = {}) =>
  transferRequest(network, { from: employer, to: contractor, ...given })
const withdrawal = (given: Partial<Parameters<typeof withdrawRequest>[1]> = {}) =>
  withdrawRequest(network, { from: employer, to: contractor, value: 250n, ...given })
/** The failure of a call in which some arguments are replaced. */
const failureWith = (request: Request, replaced: Record<number, xdr.ScVal>, source = request.source) =>
  failure(network, { ...request, source, args: request.args.map((given, index) => replaced[index] ?? given) })

function eventsOf(result: { events: xdr.ContractEvent[] }) {
  return result.events.map(({ contractId, body }) => ({
    contract: contractId?.toString(),
    topics: body.value.topics.map((topic) => scValToNative(topic)),
    data: scValToNative(body.value.data),
  }))
}

const underlyingBalance = (holder: xdr.ScVal): bigint => {
  const contract = network.contracts.underlying
  const result = record(network, { source: employer, contract, name: 'balance', args: [holder] })
  if (!result.ok) throw new Error(result.error)
  return scValToNative(result.returnValue)
}

describe('register', () => {
  it('opens an account with both commitments empty and the keys of the payload', () => {
    const result = apply(network, registerRequest(network, stranger, 31n))
    const { y, pvk } = keysOf(31n)
    const account = confidentialBalance(network, stranger)
    expect(Object.keys(account)).toEqual([
      'auditor_id',
      'receiving_commitment',
      'spendable_commitment',
      'spending_public_key',
      'viewing_public_key',
    ])
    expect(account.auditor_id).toBe(0)
    expect(commitmentsOf(stranger)).toEqual([ZERO, ZERO])
    expect([hex(account.spending_public_key), hex(account.viewing_public_key)]).toEqual([hex(y), hex(pvk)])
    expect(eventsOf(result)[0]).toMatchObject({ topics: ['register', stranger.publicKey()], data: { auditor_id: 0 } })
  })

  it('stores under [Account, address], persistent, for a week', () => {
    apply(network, registerRequest(network, stranger, 31n))
    const entry = network.state.get(confidentialAccountKey(network.contracts.token, stranger.publicKey()).id)
    expect(entry?.liveUntil).toBe(ledger.sequence + 120_960 - 1)
    const key = entry && xdr.LedgerKey.fromXdr(entry.key, 'base64')
    if (key?.type !== 'contractData') throw new Error('not contract data')
    expect(scValToNative(key.contractData.key)).toEqual(['Account', stranger.publicKey()])
    expect(key.contractData.durability.name).toBe('persistent')
  })

  it('refuses a second registration, an unknown auditor, a proof for another account and the identity as a key', () => {
    const request = registerRequest(network, stranger, 31n)
    expect(failure(network, registerRequest(network, employer, 31n))).toBe('Error(Contract, #3500)')
    // The registry's own code.
    expect(failureWith(request, { 1: number(9) })).toBe('Error(Contract, #3301)')
    expect(failureWith(request, { 0: g(issuer) }, issuer)).toBe('Error(Contract, #3506)')
    const keys = { y: new Uint8Array(64), pvk: keysOf(1n).pvk }
    const { token } = network.contracts
    const proof = standIn({ circuit: 'register', token, account: stranger.publicKey(), ...keys })
    expect(failureWith(request, { 2: bytes(encodeCallData(keys, proof)) })).toBe('Error(Contract, #3514)')
  })
})

describe('deposit and merge', () => {
  it('moves the underlying asset into the token and amount·G into what is received', () => {
    const [before, held] = [underlyingBalance(g(employer)), underlyingBalance(c(network.contracts.token))]
    const result = apply(network, depositRequest(network, employer, contractor, 250n))
    expect(commitmentsOf(contractor)).toEqual([ZERO, hex(point(250n))])
    expect(underlyingBalance(g(employer))).toBe(before - 250n)
    expect(underlyingBalance(c(network.contracts.token))).toBe(held + 250n)
    expect(eventsOf(result).map(({ topics }) => topics[0])).toEqual(['transfer', 'deposit'])
    expect(eventsOf(result)[1]?.data).toEqual({ amount: 250n })
  })

  it('adds up, nothing included, and merge moves the sum to what can be spent', () => {
    for (const value of [250n, 0n, 50n]) apply(network, depositRequest(network, employer, contractor, value))
    const result = apply(network, mergeRequest(network, contractor))
    expect(commitmentsOf(contractor)).toEqual([hex(point(300n)), ZERO])
    expect(eventsOf(result)[0]).toMatchObject({ topics: ['merge', contractor.publicKey()], data: {} })
  })

  it('mints when the issuer deposits, which needs neither account nor trustline', () => {
    const result = apply(network, depositRequest(network, issuer, contractor, 70n))
    expect(eventsOf(result)[0]?.topics[0]).toBe('mint')
    expect(underlyingBalance(c(network.contracts.token))).toBe(1_070n)
  })

  it.each<[string, () => Request, string]>([
    ['a recipient without account', () => depositRequest(network, employer, stranger, 1n), 'Contract, #3501'],
    ['a negative amount', () => depositRequest(network, employer, contractor, -1n), 'Contract, #3502'],
    ['a sender without trustline', () => depositRequest(network, stranger, contractor, 1n), 'Contract, #13'],
    ['more than the sender has', () => depositRequest(network, employer, contractor, 10n ** 12n), 'Contract, #10'],
    ['merging without an account', () => mergeRequest(network, stranger), 'Contract, #3501'],
  ])('refuses %s', (_, request, error) => {
    expect(failure(network, request())).toBe(`Error(${error})`)
  })
})

describe('confidential_transfer', () => {
  it('replaces what the sender can spend and adds to what the recipient receives', () => {
    const result = apply(network, transfer())
    expect([commitmentsOf(employer)[0], commitmentsOf(contractor)[1]]).toEqual([hex(point(600n)), hex(point(400n))])
    expect(scValToNative(result.returnValue)).toBeNull()
    const [event] = eventsOf(result)
    expect(event?.topics).toEqual(['transfer', employer.publicKey(), contractor.publicKey()])
    const { c_spend_new: _, c_transfer: __, ...disclosed } = transferPayload()
    expect(Object.keys(event?.data)).toEqual(Object.keys(disclosed))
    expect(result.instructions).toBe(113_400_000)
  })

  it('pays oneself: both halves of the one entry change', () => {
    apply(network, transfer({ to: employer }))
    expect(commitmentsOf(employer)).toEqual([hex(point(600n)), hex(point(400n))])
  })

  it('refuses a proof made before the balance moved on (#3506), and takes one made again', () => {
    const stale = transfer()
    apply(network, transfer())
    expect(failure(network, stale)).toBe('Error(Contract, #3506)')
    expect(failure(network, transfer())).toBe('')
  })

  it('does not mind deposits and payments that arrive in between', () => {
    const request = transfer()
    for (const to of [employer, contractor]) apply(network, depositRequest(network, employer, to, 5n))
    expect(failure(network, request)).toBe('')
  })

  const prove = (from = employer, to = contractor, payload: Payload = {}) =>
    proveTransfer(network, from, to, { ...transferPayload(), ...payload })
  it.each<[string, () => Uint8Array]>([
    ['for another recipient', () => prove(employer, employer)],
    ['by another sender', () => prove(contractor, contractor)],
    ['of another payload', () => prove(employer, contractor, { sigma: point(3n).slice(0, 32) })],
    ['that is one byte short', () => prove().slice(1)],
    ['with anything after the digest', () => prove().with(14_591, 1)],
    ['that is empty', () => new Uint8Array()],
  ])('refuses a proof %s (#3506)', (_, proof) => {
    expect(failure(network, transfer({ proof: proof() }))).toBe('Error(Contract, #3506)')
  })

  it('refuses a sender and a recipient without account (#3501)', () => {
    expect(failureWith(transfer(), { 1: g(stranger) })).toBe('Error(Contract, #3501)')
    expect(failureWith(transfer(), { 0: g(stranger) }, stranger)).toBe('Error(Contract, #3501)')
  })

  const overField = Uint8Array.from(Buffer.from(FIELD.toString(16).padStart(64, '0'), 'hex'))
  const offCurve = new Uint8Array(64).fill(1)
  const overPoint = Uint8Array.from([...overField, ...point(1n).slice(32)])
  const without = (name: string, { [name]: _, ...others } = transferPayload()) => others
  it.each<[string, Payload, number]>([
    ['a field element that is the modulus', { v_tilde: overField }, 3514],
    ['a point off the curve', { c_transfer: offCurve }, 3514],
    ['a coordinate that is not canonical', { c_spend_new: overPoint }, 3514],
    ['r_e_point off the curve', { r_e_point: offCurve }, 3514],
    ['a field of 31 bytes', { sigma: new Uint8Array(31) }, 3507],
    ['a point of 32 bytes', { c_transfer: new Uint8Array(32) }, 3507],
    ['a field that nobody knows', { surprise: new Uint8Array(32) }, 3507],
  ])('refuses %s', (_, fields, code) => {
    const payload = { ...transferPayload(), ...fields }
    expect(failure(network, transfer({ payload }))).toBe(`Error(Contract, #${code})`)
  })

  it('refuses a payload of an earlier interface, and one without any of its fields (#3507)', () => {
    const earlier = { ...without('c_transfer'), c_tx: point(1n) }
    for (const payload of [earlier, ...Object.keys(transferPayload()).map((name) => without(name))]) {
      expect(failure(network, transfer({ payload }))).toBe('Error(Contract, #3507)')
    }
  })

  it.each([
    ['nothing', new Uint8Array()],
    ['noise', new Uint8Array(100).fill(7)],
    ['another value', nativeToScVal('payload').toXdr()],
    ['a map without proof', nativeToScVal({ payload: {} }, { type: { payload: ['symbol', null] } }).toXdr()],
    ['a map and more', Uint8Array.from([...encodeCallData(transferPayload(), new Uint8Array(14_592)), 0, 0, 0, 0])],
  ])('refuses data that is %s (#3507)', (_, data) => {
    expect(failureWith(transfer(), { 2: bytes(data) })).toBe('Error(Contract, #3507)')
  })

  it('refuses a payload whose keys are not in ascending order (#3507)', () => {
    const entry = (name: string, val: xdr.ScVal) => new xdr.ScMapEntry({ key: xdr.ScVal.scvSymbol(name), val })
    const fields = Object.entries(transferPayload()).map(([name, value]) => entry(name, bytes(value)))
    const mapOf = (entries: xdr.ScMapEntry[]) =>
      bytes(xdr.ScVal.scvMap([entry('payload', xdr.ScVal.scvMap(entries)), entry('proof', bytes(prove()))]).toXdr())
    expect(failureWith(transfer(), { 2: mapOf(fields) })).toBe('')
    expect(failureWith(transfer(), { 2: mapOf(fields.toReversed()) })).toBe('Error(Contract, #3507)')
  })
})

describe('withdraw', () => {
  const earlierWithdrawal = ({ r_tilde_aud_s: _, ...others } = withdrawPayload()): Payload => others

  it('replaces the commitment and pays out in the clear', () => {
    const before = underlyingBalance(g(contractor))
    const result = apply(network, withdrawal())
    expect(commitmentsOf(employer)[0]).toBe(hex(point(750n)))
    expect(underlyingBalance(g(contractor))).toBe(before + 250n)
    expect(underlyingBalance(c(network.contracts.token))).toBe(750n)
    expect(eventsOf(result)[1]).toMatchObject({
      topics: ['withdraw', employer.publicKey(), contractor.publicKey()],
      data: { amount: 250n },
    })
  })

  it.each<[string, () => string, string]>([
    ['another amount than the proof is for', () => failureWith(withdrawal(), { 2: amount(251n) }), '#3506'],
    ['a negative amount', () => failure(network, withdrawal({ value: -1n })), '#3502'],
    ['a recipient without trustline', () => failure(network, withdrawal({ to: stranger })), '#13'],
    ['more than the token holds', () => failure(network, withdrawal({ value: 1_001n })), '#10'],
    ['an account that is not registered', () => failureWith(withdrawal(), { 0: g(stranger) }, stranger), '#3501'],
    ['data that is none', () => failureWith(withdrawal(), { 3: bytes(new Uint8Array(8)) }), '#3507'],
    ['a payload without its last field', () => failure(network, withdrawal({ payload: earlierWithdrawal() })), '#3507'],
  ])('refuses %s', (_, fail, code) => {
    expect(fail()).toBe(`Error(Contract, ${code})`)
  })
})

describe('what is not there', () => {
  const call = (name: string, args: xdr.ScVal[]) =>
    record(network, { source: employer, contract: network.contracts.token, name, args })
  const both = [g(employer), g(contractor)]

  it('answers that no account is a spender', () => {
    const result = call('is_spender', both)
    expect(result.ok && scValToNative(result.returnValue)).toBe(false)
  })

  it.each([
    ['get_spender_delegation', both, 'Error(Contract, #3504)'],
    ['revoke_spender', both, 'Error(Contract, #3504)'],
    ['confidential_transfer_from', [g(employer), ...both, bytes(new Uint8Array())], 'Error(Contract, #3504)'],
    ['set_spender', [...both, number(1), bytes(new Uint8Array())], 'Error(Context, InvalidAction)'],
    ['freeze', both, 'Error(WasmVm, MissingValue)'],
    ['merge', both, 'Error(WasmVm, UnexpectedSize)'],
    ['merge', [number(1)], 'Error(WasmVm, InvalidAction)'],
    ['confidential_balance', [g(stranger)], 'Error(Contract, #3501)'],
  ])('%s fails', (name, args, error) => {
    expect(label(call(name, args))).toBe(error)
  })

  it('says which setting a token without constructor lacks', () => {
    const requests = { transfer: transfer(), withdrawal: withdrawal() }
    const key = instanceKey(network.contracts.token).id
    const entry = network.state.get(key)
    const { data } = entry ?? {}
    if (!entry || data?.type !== 'contractData' || data.contractData.val.type !== 'scvContractInstance') {
      throw new Error('no instance')
    }
    const { executable, storage } = data.contractData.val.instance
    const drop = (name: string) => {
      const rest = (storage ?? []).filter((item) => scValToNative(item.key)[0] !== name)
      const instance = new xdr.ScContractInstance({ executable, storage: rest })
      const val = xdr.ScVal.scvContractInstance(instance)
      const changed = new xdr.ContractDataEntry({ ...data.contractData, val })
      network.state.put({ ...entry, data: xdr.LedgerEntryData.contractData(changed) })
    }
    drop('UnderlyingAsset')
    expect(failure(network, requests.withdrawal)).toBe('Error(Contract, #3508)')
    drop('Verifier')
    expect(failure(network, requests.transfer)).toBe('Error(Contract, #3509)')
    drop('Auditor')
    expect(failure(network, requests.transfer)).toBe('Error(Contract, #3510)')
  })
})
