import { nativeToScVal, scValToNative, xdr } from '@stellar/stellar-sdk'
import { beforeEach, describe, expect, it } from 'vitest'
import { auditorKeyKey } from '#lib/devnet/host/auditor-registry.ts'
import { instanceKey } from '#lib/devnet/host/entry-key.ts'
import { confidentialAccountKey } from '#lib/devnet/host/token/account.ts'
import { rentFee } from '#lib/devnet/transaction/fees.ts'
import { standIn } from '#lib/prover/stand-in.ts'
import { encodeCallData } from '#lib/wallet/call-data.ts'
import { FIELD } from '#lib/wallet/grumpkin.ts'
import {
  amount,
  apply,
  c,
  contractor,
  employer,
  enforce,
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
const transfer = (fields: Partial<Parameters<typeof transferRequest>[1]> = {}) =>
  transferRequest(network, { from: employer, to: contractor, ...fields })
const withdrawal = (fields: Partial<Parameters<typeof withdrawRequest>[1]> = {}) =>
  withdrawRequest(network, { from: employer, to: contractor, value: 250n, ...fields })
/** The failure of a call in which some arguments are replaced. */
const failureWith = (request: Request, replaced: Record<number, xdr.ScVal>, source = request.source) =>
  failure(network, { ...request, source, args: request.args.map((argument, index) => replaced[index] ?? argument) })

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

  it('rejects a second registration, an unknown auditor and a proof for another account', () => {
    const request = registerRequest(network, stranger, 31n)
    expect(failure(network, registerRequest(network, employer, 31n))).toBe('Error(Contract, #3500)')
    // The registry's own code.
    expect(failureWith(request, { 1: number(9) })).toBe('Error(Contract, #3301)')
    expect(failureWith(request, { 0: g(issuer) }, issuer)).toBe('Error(Contract, #3506)')
  })

  it('verifies the proof before it reads the account', () => {
    const stale = registerRequest(network, stranger, 31n)
    expect(failureWith(stale, { 0: g(employer) }, employer)).toBe('Error(Contract, #3506)')
  })

  const registerWith = (keys: { y: Uint8Array; pvk: Uint8Array }) => {
    const { token } = network.contracts
    const proof = standIn({ circuit: 'register', token, account: stranger.publicKey(), ...keys })
    return failureWith(registerRequest(network, stranger, 31n), { 2: bytes(encodeCallData(keys, proof)) })
  }
  it.each([
    ['the identity', new Uint8Array(64), 3506],
    ['a point off the curve', new Uint8Array(64).fill(1), 3506],
    ['a point with a coordinate above the field modulus', new Uint8Array(64).fill(255), 3514],
  ])('rejects %s as a key', (_, key, code) => {
    expect(registerWith({ y: key, pvk: keysOf(1n).pvk })).toBe(`Error(Contract, #${code})`)
    expect(registerWith({ y: keysOf(1n).y, pvk: key })).toBe(`Error(Contract, #${code})`)
  })

  it("extends the life of the auditor's key, once a day at most", () => {
    const key = auditorKeyKey(network.contracts.auditor, 0)
    const fresh = openNetwork()
    expect(fresh.state.get(key.id)?.liveUntil).toBe(120_960)
    const decoded = xdr.LedgerKey.fromXdr(key.id, 'base64')
    if (decoded.type !== 'contractData') throw new Error('not contract data')
    expect(scValToNative(decoded.contractData.key)).toEqual(['Key', 0])
    apply(fresh, registerRequest(fresh, stranger, 31n))
    expect(fresh.state.get(key.id)?.liveUntil).toBe(ledger.sequence + 518_400)
    const after = fresh.state.get(key.id)
    const before = openNetwork().state.get(key.id)
    if (!after || !before) throw new Error('no key')
    // Measured on the released contract, with the 15 % that a simulation adds: 61,740 stroops.
    const declared = (rentFee([{ key: key.id, before, after }], 1) * 115n) / 100n
    expect(Math.abs(Number(declared) - 61_740)).toBeLessThan(200)
  })
})

describe('deposit and merge', () => {
  it('moves the underlying asset into the token and adds amount·G to the receiving commitment', () => {
    const [before, held] = [underlyingBalance(g(employer)), underlyingBalance(c(network.contracts.token))]
    const result = apply(network, depositRequest(network, employer, contractor, 250n))
    expect(commitmentsOf(contractor)).toEqual([ZERO, hex(point(250n))])
    expect(underlyingBalance(g(employer))).toBe(before - 250n)
    expect(underlyingBalance(c(network.contracts.token))).toBe(held + 250n)
    expect(eventsOf(result).map(({ topics }) => topics[0])).toEqual(['transfer', 'deposit'])
    expect(eventsOf(result)[1]?.data).toEqual({ amount: 250n })
  })

  it('adds up, even with 0, and a merge makes the sum spendable', () => {
    for (const value of [250n, 0n, 50n]) apply(network, depositRequest(network, employer, contractor, value))
    const result = apply(network, mergeRequest(network, contractor))
    expect(commitmentsOf(contractor)).toEqual([hex(point(300n)), ZERO])
    expect(eventsOf(result)[0]).toMatchObject({ topics: ['merge', contractor.publicKey()], data: {} })
  })

  it('mints when the issuer deposits, without an account or a trustline', () => {
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
  ])('rejects %s', (_, request, error) => {
    expect(failure(network, request())).toBe(`Error(${error})`)
  })
})

describe('confidential_transfer', () => {
  it('replaces the spendable commitment of the sender and adds to the receiving one of the recipient', () => {
    const result = apply(network, transfer())
    expect([commitmentsOf(employer)[0], commitmentsOf(contractor)[1]]).toEqual([hex(point(600n)), hex(point(400n))])
    expect(scValToNative(result.returnValue)).toBeNull()
    const [event] = eventsOf(result)
    expect(event?.topics).toEqual(['transfer', employer.publicKey(), contractor.publicKey()])
    const { c_spend_new: _, c_transfer: __, ...disclosed } = transferPayload()
    expect(Object.keys(event?.data)).toEqual(Object.keys(disclosed))
  })

  it('pays oneself, changing both commitments of the entry', () => {
    apply(network, transfer({ to: employer }))
    expect(commitmentsOf(employer)).toEqual([hex(point(600n)), hex(point(400n))])
  })

  it('rejects a proof for an earlier balance (#3506), and accepts a new one', () => {
    const stale = transfer()
    apply(network, transfer())
    expect(failure(network, stale)).toBe('Error(Contract, #3506)')
    expect(failure(network, transfer())).toBe('')
  })

  it('accepts a proof after deposits and incoming payments', () => {
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
    ['with a non-zero byte after the digest', () => prove().with(14_591, 1)],
    ['that is empty', () => new Uint8Array()],
  ])('rejects a proof %s (#3506)', (_, proof) => {
    expect(failure(network, transfer({ proof: proof() }))).toBe('Error(Contract, #3506)')
  })

  it('rejects an unregistered sender or recipient (#3501)', () => {
    expect(failureWith(transfer(), { 1: g(stranger) })).toBe('Error(Contract, #3501)')
    expect(failureWith(transfer(), { 0: g(stranger) }, stranger)).toBe('Error(Contract, #3501)')
  })

  const trailed = (count: number) => {
    const data = encodeCallData(transferPayload(), new Uint8Array(14_592))
    return Uint8Array.from([...data, ...new Uint8Array(count)])
  }
  const overField = Uint8Array.from(Buffer.from(FIELD.toString(16).padStart(64, '0'), 'hex'))
  const offCurve = new Uint8Array(64).fill(1)
  const overPoint = Uint8Array.from([...overField, ...point(1n).slice(32)])
  const without = (name: string, { [name]: _, ...others } = transferPayload()) => others
  it.each<[string, Payload, number]>([
    ['a field element that is the modulus', { v_tilde: overField }, 3514],
    ['a point off the curve', { c_transfer: offCurve }, 3506],
    ['a coordinate that is not canonical', { c_spend_new: overPoint }, 3514],
    ['r_e_point off the curve', { r_e_point: offCurve }, 3506],
    ['a field of 31 bytes', { sigma: new Uint8Array(31) }, 3507],
    ['a point of 32 bytes', { c_transfer: new Uint8Array(32) }, 3507],
  ])('rejects %s', (_, fields, code) => {
    const payload = { ...transferPayload(), ...fields }
    expect(failure(network, transfer({ payload }))).toBe(`Error(Contract, #${code})`)
  })

  it('ignores a field that the payload does not have', () => {
    expect(failure(network, transfer({ payload: { ...transferPayload(), surprise: new Uint8Array(3) } }))).toBe('')
  })

  it('rejects a payload of an earlier interface, and one without any of its fields (#3507)', () => {
    const earlier = { ...without('c_transfer'), c_tx: point(1n) }
    for (const payload of [earlier, ...Object.keys(transferPayload()).map((name) => without(name))]) {
      expect(failure(network, transfer({ payload }))).toBe('Error(Contract, #3507)')
    }
  })

  it.each([
    ['is empty', new Uint8Array(), 'Context, ExceededLimit'],
    ['is not XDR', new Uint8Array(100).fill(7), 'Context, ExceededLimit'],
    ['is cut', encodeCallData(transferPayload(), new Uint8Array(14_592)).subarray(0, -4), 'Context, ExceededLimit'],
    ['has bytes after its value', trailed(4), 'Value, InvalidInput'],
    ['has one byte after its value', trailed(1), 'Value, InvalidInput'],
    ['is another value', nativeToScVal('payload').toXdr(), 'Contract, #3507'],
    [
      'has no proof',
      nativeToScVal({ payload: {} }, { type: { payload: ['symbol', null] } }).toXdr(),
      'Contract, #3507',
    ],
  ])('rejects data that %s', (_, data, error) => {
    expect(failureWith(transfer(), { 2: bytes(data) })).toBe(`Error(${error})`)
  })

  it('rejects a map whose keys do not ascend', () => {
    const entry = (name: string, val: xdr.ScVal) => new xdr.ScMapEntry({ key: xdr.ScVal.scvSymbol(name), val })
    const fields = Object.entries(transferPayload()).map(([name, value]) => entry(name, bytes(value)))
    const mapOf = (entries: xdr.ScMapEntry[]) =>
      bytes(xdr.ScVal.scvMap([entry('payload', xdr.ScVal.scvMap(entries)), entry('proof', bytes(prove()))]).toXdr())
    expect(failureWith(transfer(), { 2: mapOf(fields) })).toBe('')
    expect(failureWith(transfer(), { 2: mapOf(fields.toReversed()) })).toBe('Error(Object, InvalidInput)')
    expect(failureWith(transfer(), { 2: mapOf([...fields.slice(0, 1), ...fields]) })).toBe(
      'Error(Object, InvalidInput)',
    )
  })

  it('decodes the data before it reads the accounts', () => {
    const request = transfer()
    const malformed = bytes(new Uint8Array(8))
    for (const replaced of [
      [g(stranger), g(contractor)],
      [g(stranger), g(stranger)],
    ]) {
      expect(failureWith(request, { ...replaced, 2: malformed }, stranger)).toBe('Error(Contract, #3507)')
    }
  })
})

describe('withdraw', () => {
  const earlierWithdrawal = ({ r_tilde_aud_s: _, ...others } = withdrawPayload()): Payload => others

  it('replaces the commitment and pays out a public amount', () => {
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
    ['a different amount than the proof’s', () => failureWith(withdrawal(), { 2: amount(251n) }), '#3506'],
    ['a negative amount', () => failure(network, withdrawal({ value: -1n })), '#3502'],
    ['a recipient without trustline', () => failure(network, withdrawal({ to: stranger })), '#13'],
    ['more than the token holds', () => failure(network, withdrawal({ value: 1_001n })), '#10'],
    ['an account that is not registered', () => failureWith(withdrawal(), { 0: g(stranger) }, stranger), '#3501'],
    [
      'data of another type before a negative amount',
      () => failureWith(withdrawal(), { 2: amount(-1n), 3: bytes(new Uint8Array(8)) }),
      '#3507',
    ],
    ['data of another type', () => failureWith(withdrawal(), { 3: bytes(new Uint8Array(8)) }), '#3507'],
    ['a payload without its last field', () => failure(network, withdrawal({ payload: earlierWithdrawal() })), '#3507'],
  ])('rejects %s', (_, fail, code) => {
    expect(fail()).toBe(`Error(Contract, ${code})`)
  })
})

/** The instructions that a client declares after simulating, with the 4 % or 50,000 that a simulation adds. */
const declared = ({ instructions }: { instructions: number }) =>
  Math.max(Math.floor(instructions * 1.04), instructions + 50_000)

describe('declares the metered instructions of the released contract', () => {
  const expectNear = (result: { instructions: number }, measured: number) =>
    expect(Math.abs(declared(result) / measured - 1)).toBeLessThan(0.02)

  it('for a registration, a transfer and a withdrawal', () => {
    expectNear(apply(network, registerRequest(network, stranger, 31n)), 99_800_000)
    expectNear(apply(network, transfer()), 102_800_000)
    expectNear(apply(network, transfer()), 102_800_000)
    expectNear(apply(network, withdrawal()), 100_800_000)
  })

  it.each([
    [0n, 1_550_000],
    [50n, 15_700_000],
    [1_000n, 16_900_000],
  ])('for a deposit of %s base units, growing with the bits of the amount', (value, measured) => {
    const { underlying, token } = network.contracts
    const args = [g(employer), c(token), amount(value)]
    const transferred = apply(network, { source: employer, contract: underlying, name: 'transfer', args })
    const deposited = apply(network, depositRequest(network, employer, contractor, value))
    // 186,705 are the instructions of the released asset contract.
    expectNear({ instructions: deposited.instructions - transferred.instructions + 186_705 }, measured)
  })

  it('for a merge, fewer when a commitment is the identity', () => {
    expectNear(apply(network, mergeRequest(network, contractor)), 1_070_000)
    apply(network, depositRequest(network, issuer, employer, 1n))
    expectNear(apply(network, mergeRequest(network, employer)), 1_470_000)
  })

  it('for a stale transfer, which fails before most of the verification', () => {
    const stale = transfer()
    const recorded = record(network, stale)
    if (!recorded.ok) throw new Error(recorded.error)
    apply(network, transfer())
    const run = (instructions: number) =>
      enforce(network, stale, {
        auth: recorded.auth,
        resources: { instructions, diskReadBytes: 200_000, writeBytes: 100_000 },
      })
    expect(label(run(32_300_000))).toBe('Error(Contract, #3506)')
    expect(label(run(31_500_000))).toBe('Error(Budget, ExceededLimit)')
  })
})

describe('a call that cannot succeed', () => {
  const call = (name: string, args: xdr.ScVal[]) =>
    record(network, {
      source: name === 'revoke_spender' && args[0]?.equals(g(stranger)) ? stranger : employer,
      contract: network.contracts.token,
      name,
      args,
    })
  const both = [g(employer), g(contractor)]

  it.each([
    ['get_spender_delegation', both, 'Error(Contract, #3504)'],
    ['revoke_spender', both, 'Error(Contract, #3504)'],
    ['revoke_spender', [g(stranger), g(contractor)], 'Error(Contract, #3501)'],
    ['freeze', both, 'Error(WasmVm, MissingValue)'],
    ['merge', both, 'Error(WasmVm, UnexpectedSize)'],
    ['merge', [number(1)], 'Error(WasmVm, InvalidAction)'],
    ['confidential_balance', [g(stranger)], 'Error(Contract, #3501)'],
  ])('%s fails', (name, args, error) => {
    expect(label(call(name, args))).toBe(error)
  })

  it('fails with the error of the setting that the token lacks', () => {
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
    drop('AddressAsField')
    expect(failure(network, requests.transfer)).toBe('Error(Contract, #3511)')
    drop('Auditor')
    expect(failure(network, requests.transfer)).toBe('Error(Contract, #3510)')
  })
})
