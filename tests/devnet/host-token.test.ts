import { nativeToScVal, scValToNative, xdr } from '@stellar/stellar-sdk'
import { describe, expect, it } from 'vitest'
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

function funded(): Network {
  const network = openNetwork()
  fund(network, employer, contractor)
  return network
}

function eventsOf(result: { events: xdr.ContractEvent[] }) {
  return result.events.map(({ contractId, body }) => ({
    contract: contractId?.toString(),
    topics: body.value.topics.map((topic) => scValToNative(topic)),
    data: scValToNative(body.value.data),
  }))
}

const underlyingBalance = (network: Network, holder: xdr.ScVal): bigint => {
  const contract = network.contracts.underlying
  const result = record(network, { source: employer, contract, name: 'balance', args: [holder] })
  if (!result.ok) throw new Error(result.error)
  return scValToNative(result.returnValue)
}

describe('register', () => {
  it('opens an account with both commitments empty and the keys of the payload', () => {
    const network = openNetwork()
    const result = apply(network, registerRequest(network, employer, 11n))
    const { y, pvk } = keysOf(11n)
    const account = confidentialBalance(network, employer)
    expect(Object.keys(account)).toEqual([
      'auditor_id',
      'receiving_commitment',
      'spendable_commitment',
      'spending_public_key',
      'viewing_public_key',
    ])
    expect(account.auditor_id).toBe(0)
    expect(hex(account.receiving_commitment)).toBe(ZERO)
    expect(hex(account.spendable_commitment)).toBe(ZERO)
    expect(hex(account.spending_public_key)).toBe(hex(y))
    expect(hex(account.viewing_public_key)).toBe(hex(pvk))
    expect(eventsOf(result)[0]).toMatchObject({
      topics: ['register', employer.publicKey()],
      data: { auditor_id: 0 },
    })
  })

  it('stores under [Account, address], persistent, for a week', () => {
    const network = openNetwork()
    apply(network, registerRequest(network, employer, 11n))
    const entry = network.state.get(confidentialAccountKey(network.contracts.token, employer.publicKey()).id)
    expect(entry?.liveUntil).toBe(ledger.sequence + 120_960 - 1)
    const key = entry && xdr.LedgerKey.fromXdr(entry.key, 'base64')
    if (key?.type !== 'contractData') throw new Error('not contract data')
    expect(scValToNative(key.contractData.key)).toEqual(['Account', employer.publicKey()])
    expect(key.contractData.durability.name).toBe('persistent')
  })

  it('refuses a second registration (#3500)', () => {
    const network = openNetwork()
    apply(network, registerRequest(network, employer, 11n))
    expect(failure(network, registerRequest(network, employer, 31n))).toBe('Error(Contract, #3500)')
  })

  it('refuses an unknown auditor with the registry’s own code (#3301)', () => {
    const network = openNetwork()
    const request = registerRequest(network, employer, 11n)
    const [account, , data] = request.args
    if (!account || !data) throw new Error('no arguments')
    expect(failure(network, { ...request, args: [account, number(9), data] })).toBe('Error(Contract, #3301)')
  })

  it('refuses a proof that was made for another account (#3506)', () => {
    const network = openNetwork()
    const request = registerRequest(network, contractor, 11n)
    const args = [g(employer), ...request.args.slice(1)]
    expect(failure(network, { ...request, source: employer, args })).toBe('Error(Contract, #3506)')
  })

  it('refuses the identity as a key (#3514)', () => {
    const network = openNetwork()
    const { token } = network.contracts
    const keys = { y: new Uint8Array(64), pvk: keysOf(1n).pvk }
    const proof = standIn({ circuit: 'register', token, account: employer.publicKey(), ...keys })
    const args = [g(employer), number(0), bytes(encodeCallData(keys, proof))]
    const request = { source: employer, contract: token, name: 'register', args }
    expect(failure(network, request)).toBe('Error(Contract, #3514)')
  })
})

describe('deposit and merge', () => {
  it('moves the underlying asset into the token and amount·G into what is received', () => {
    const network = openNetwork()
    apply(network, registerRequest(network, contractor, 21n))
    const before = underlyingBalance(network, g(employer))
    const result = apply(network, depositRequest(network, employer, contractor, 250n))
    expect(hex(confidentialBalance(network, contractor).receiving_commitment)).toBe(hex(point(250n)))
    expect(underlyingBalance(network, g(employer))).toBe(before - 250n)
    expect(underlyingBalance(network, c(network.contracts.token))).toBe(250n)
    expect(eventsOf(result).map(({ topics }) => topics[0])).toEqual(['transfer', 'deposit'])
    expect(eventsOf(result)[1]?.data).toEqual({ amount: 250n })
  })

  it('adds up, and merge moves the sum to what can be spent', () => {
    const network = openNetwork()
    apply(network, registerRequest(network, contractor, 21n))
    apply(network, depositRequest(network, employer, contractor, 250n))
    apply(network, depositRequest(network, employer, contractor, 50n))
    const result = apply(network, mergeRequest(network, contractor))
    const account = confidentialBalance(network, contractor)
    expect(hex(account.spendable_commitment)).toBe(hex(point(300n)))
    expect(hex(account.receiving_commitment)).toBe(ZERO)
    expect(eventsOf(result)[0]).toMatchObject({ topics: ['merge', contractor.publicKey()], data: {} })
  })

  it('mints when the issuer deposits, which needs neither account nor trustline', () => {
    const network = openNetwork()
    apply(network, registerRequest(network, contractor, 21n))
    const result = apply(network, depositRequest(network, issuer, contractor, 70n))
    expect(eventsOf(result)[0]?.topics[0]).toBe('mint')
    expect(underlyingBalance(network, c(network.contracts.token))).toBe(70n)
  })

  it('accepts an amount of zero', () => {
    const network = openNetwork()
    apply(network, registerRequest(network, contractor, 21n))
    apply(network, depositRequest(network, employer, contractor, 0n))
    expect(hex(confidentialBalance(network, contractor).receiving_commitment)).toBe(ZERO)
  })

  it.each([
    [
      'a recipient without account',
      () => depositRequest(openNetwork(), employer, stranger, 1n),
      'Error(Contract, #3501)',
    ],
    ['a negative amount', () => depositRequest(openNetwork(), employer, contractor, -1n), 'Error(Contract, #3502)'],
    [
      'a sender without trustline',
      () => depositRequest(openNetwork(), stranger, contractor, 1n),
      'Error(Contract, #13)',
    ],
    [
      'more than the sender has',
      () => depositRequest(openNetwork(), employer, contractor, 10n ** 12n),
      'Error(Contract, #10)',
    ],
    ['merging without an account', () => mergeRequest(openNetwork(), stranger), 'Error(Contract, #3501)'],
  ])('refuses %s', (_, request, error) => {
    const network = openNetwork()
    apply(network, registerRequest(network, contractor, 21n))
    expect(failure(network, request())).toBe(error)
  })
})

describe('confidential_transfer', () => {
  it('replaces what the sender can spend and adds to what the recipient receives', () => {
    const network = funded()
    const result = apply(network, transferRequest(network, { from: employer, to: contractor }))
    expect(hex(confidentialBalance(network, employer).spendable_commitment)).toBe(hex(point(600n)))
    expect(hex(confidentialBalance(network, contractor).receiving_commitment)).toBe(hex(point(400n)))
    expect(scValToNative(result.returnValue)).toBeNull()
    const [event] = eventsOf(result)
    expect(event?.topics).toEqual(['transfer', employer.publicKey(), contractor.publicKey()])
    expect(Object.keys(event?.data)).toEqual([
      'b_tilde',
      'b_tilde_aud_s',
      'r_e_point',
      'r_tilde_aud_r',
      'r_tilde_aud_s',
      'sigma',
      'v_tilde',
      'v_tilde_aud_r',
      'v_tilde_aud_s',
    ])
    expect(result.instructions).toBe(113_400_000)
  })

  it('pays oneself: both halves of the one entry change', () => {
    const network = funded()
    apply(network, transferRequest(network, { from: employer, to: employer }))
    const account = confidentialBalance(network, employer)
    expect(hex(account.spendable_commitment)).toBe(hex(point(600n)))
    expect(hex(account.receiving_commitment)).toBe(hex(point(400n)))
  })

  it('refuses a proof made before the balance moved on (#3506), and takes one made again', () => {
    const network = funded()
    const early = transferRequest(network, { from: employer, to: contractor })
    const stale = transferRequest(network, { from: employer, to: contractor })
    apply(network, early)
    expect(failure(network, stale)).toBe('Error(Contract, #3506)')
    expect(failure(network, transferRequest(network, { from: employer, to: contractor }))).toBe('')
  })

  it('does not mind deposits and payments that arrive in between', () => {
    const network = funded()
    const request = transferRequest(network, { from: employer, to: contractor })
    apply(network, depositRequest(network, employer, employer, 5n))
    apply(network, depositRequest(network, employer, contractor, 5n))
    expect(failure(network, request)).toBe('')
  })

  it.each<[string, (network: Network) => Uint8Array]>([
    ['with a proof for another recipient', (network) => proveTransfer(network, employer, employer, transferPayload())],
    ['with a proof by another sender', (network) => proveTransfer(network, contractor, contractor, transferPayload())],
    [
      'with a proof of another payload',
      (network) =>
        proveTransfer(network, employer, contractor, { ...transferPayload(), sigma: point(3n).slice(0, 32) }),
    ],
    [
      'with a proof that is one byte short',
      (network) => proveTransfer(network, employer, contractor, transferPayload()).slice(1),
    ],
    [
      'with anything after the digest',
      (network) => {
        const proof = proveTransfer(network, employer, contractor, transferPayload())
        proof[14_591] = 1
        return proof
      },
    ],
    ['with an empty proof', () => new Uint8Array()],
  ])('refuses a call %s (#3506)', (_, prove) => {
    const network = funded()
    const request = transferRequest(network, { from: employer, to: contractor, proof: prove(network) })
    expect(failure(network, request)).toBe('Error(Contract, #3506)')
  })

  it('refuses a sender and a recipient without account (#3501)', () => {
    const network = funded()
    const { args, ...request } = transferRequest(network, { from: employer, to: contractor })
    const [, , data] = args
    if (!data) throw new Error('no data')
    expect(failure(network, { ...request, args: [g(employer), g(stranger), data] })).toBe('Error(Contract, #3501)')
    const other = { ...request, source: stranger, args: [g(stranger), g(contractor), data] }
    expect(failure(network, other)).toBe('Error(Contract, #3501)')
  })

  const overField = Uint8Array.from(Buffer.from(FIELD.toString(16).padStart(64, '0'), 'hex'))
  const offCurve = new Uint8Array(64).fill(1)
  const overPoint = Uint8Array.from([...overField, ...point(1n).slice(32)])
  it.each<[string, Payload, number]>([
    ['a field element that is the modulus', { v_tilde: overField }, 3514],
    ['a point off the curve', { c_transfer: offCurve }, 3514],
    ['a coordinate that is not canonical', { c_spend_new: overPoint }, 3514],
    ['r_e_point off the curve', { r_e_point: offCurve }, 3514],
    ['a field of 31 bytes', { sigma: new Uint8Array(31) }, 3507],
    ['a point of 32 bytes', { c_transfer: new Uint8Array(32) }, 3507],
    ['a field that nobody knows', { surprise: new Uint8Array(32) }, 3507],
    ['a field under two names', { c_tx: point(1n) }, 3507],
  ])('refuses %s', (_, fields, code) => {
    const network = funded()
    const payload = { ...transferPayload(), ...fields }
    const request = transferRequest(network, { from: employer, to: contractor, payload })
    expect(failure(network, request)).toBe(`Error(Contract, #${code})`)
  })

  it.each(Object.keys(transferPayload()).filter((name) => name !== 'r_tilde_aud_s'))('misses %s (#3507)', (name) => {
    const network = funded()
    const { [name]: _, ...payload } = transferPayload()
    const request = transferRequest(network, { from: employer, to: contractor, payload })
    expect(failure(network, request)).toBe('Error(Contract, #3507)')
  })

  it.each([
    ['nothing', new Uint8Array()],
    ['noise', new Uint8Array(100).fill(7)],
    ['another value', nativeToScVal('payload').toXdr()],
    ['a map without proof', nativeToScVal({ payload: {} }, { type: { payload: ['symbol', null] } }).toXdr()],
    [
      'something after the map',
      Uint8Array.from([...encodeCallData(transferPayload(), new Uint8Array(14_592)), 0, 0, 0, 0]),
    ],
  ])('refuses data that is %s (#3507)', (_, data) => {
    const network = funded()
    const request = transferRequest(network, { from: employer, to: contractor })
    const args = [g(employer), g(contractor), bytes(data)]
    expect(failure(network, { ...request, args })).toBe('Error(Contract, #3507)')
  })

  it('refuses a payload whose keys are not in ascending order (#3507)', () => {
    const network = funded()
    const payload = transferPayload()
    const proof = proveTransfer(network, employer, contractor, payload)
    const entry = (name: string, val: xdr.ScVal) => new xdr.ScMapEntry({ key: xdr.ScVal.scvSymbol(name), val })
    const fields = Object.entries(payload).map(([name, value]) => entry(name, bytes(value)))
    const mapOf = (entries: xdr.ScMapEntry[]) =>
      xdr.ScVal.scvMap([entry('payload', xdr.ScVal.scvMap(entries)), entry('proof', bytes(proof))]).toXdr()
    const request = transferRequest(network, { from: employer, to: contractor })
    const withData = (data: Uint8Array) => ({ ...request, args: [g(employer), g(contractor), bytes(data)] })
    expect(failure(network, withData(mapOf(fields)))).toBe('')
    expect(failure(network, withData(mapOf(fields.toReversed())))).toBe('Error(Contract, #3507)')
  })
})

describe('the payload of an earlier interface is refused (#3507)', () => {
  const { r_tilde_aud_s: _, ...withoutLast } = transferPayload()
  const { c_transfer, ...others } = transferPayload()
  it.each<[string, Payload]>([
    ['without the field that is new in 0.8.0', withoutLast],
    ['with another name for the commitment', { ...others, c_tx: c_transfer ?? point(1n) }],
  ])('%s', (_name, payload) => {
    const network = funded()
    const request = transferRequest(network, { from: employer, to: contractor, payload })
    expect(failure(network, request)).toBe('Error(Contract, #3507)')
  })
})

describe('withdraw', () => {
  it('replaces the commitment and pays out in the clear', () => {
    const network = funded()
    const before = underlyingBalance(network, g(contractor))
    const result = apply(network, withdrawRequest(network, { from: employer, to: contractor, value: 250n }))
    expect(hex(confidentialBalance(network, employer).spendable_commitment)).toBe(hex(point(750n)))
    expect(underlyingBalance(network, g(contractor))).toBe(before + 250n)
    expect(underlyingBalance(network, c(network.contracts.token))).toBe(750n)
    expect(eventsOf(result)[1]).toMatchObject({
      topics: ['withdraw', employer.publicKey(), contractor.publicKey()],
      data: { amount: 250n },
    })
  })

  it('refuses a payload without the field that is new in 0.8.0 (#3507)', () => {
    const network = funded()
    const { r_tilde_aud_s: _, ...payload } = withdrawPayload()
    const request = withdrawRequest(network, { from: employer, to: contractor, value: 1n, payload })
    expect(failure(network, request)).toBe('Error(Contract, #3507)')
  })

  it('refuses another amount than the proof is for (#3506)', () => {
    const network = funded()
    const request = withdrawRequest(network, { from: employer, to: contractor, value: 250n })
    const [from, to, , data] = request.args
    if (!from || !to || !data) throw new Error('no arguments')
    expect(failure(network, { ...request, args: [from, to, amount(251n), data] })).toBe('Error(Contract, #3506)')
  })

  it('refuses a negative amount (#3502), a recipient without trustline (#13), more than the token holds (#10)', () => {
    const network = funded()
    const to = (recipient: typeof employer, value: bigint) =>
      failure(network, withdrawRequest(network, { from: employer, to: recipient, value }))
    expect(to(contractor, -1n)).toBe('Error(Contract, #3502)')
    expect(to(stranger, 1n)).toBe('Error(Contract, #13)')
    expect(to(contractor, 1_001n)).toBe('Error(Contract, #10)')
  })

  it('refuses an account that is not registered (#3501) and data that is none (#3507)', () => {
    const network = funded()
    const request = withdrawRequest(network, { from: employer, to: contractor, value: 1n })
    const [, to, value, data] = request.args
    if (!to || !value || !data) throw new Error('no arguments')
    const other = { ...request, source: stranger, args: [g(stranger), to, value, data] }
    expect(failure(network, other)).toBe('Error(Contract, #3501)')
    const garbled = { ...request, args: [g(employer), to, value, bytes(new Uint8Array(8))] }
    expect(failure(network, garbled)).toBe('Error(Contract, #3507)')
  })
})

describe('what is not there', () => {
  const call = (name: string, args: xdr.ScVal[]) => {
    const network = funded()
    return record(network, { source: employer, contract: network.contracts.token, name, args })
  }
  const both = [g(employer), g(contractor)]

  it('answers that nobody is a spender', () => {
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
    const network = funded()
    const request = transferRequest(network, { from: employer, to: contractor })
    const withdrawal = withdrawRequest(network, { from: employer, to: contractor, value: 1n })
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
    expect(failure(network, withdrawal)).toBe('Error(Contract, #3508)')
    drop('Verifier')
    expect(failure(network, request)).toBe('Error(Contract, #3509)')
    drop('Auditor')
    expect(failure(network, request)).toBe('Error(Contract, #3510)')
  })
})
