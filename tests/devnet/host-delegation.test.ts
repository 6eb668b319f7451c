import { scValToNative, xdr } from '@stellar/stellar-sdk'
import { beforeEach, describe, expect, it } from 'vitest'
import { delegationKey } from '#lib/devnet/host/token/delegation.ts'
import { FIELD } from '#lib/wallet/grumpkin.ts'
import {
  apply,
  contractor,
  employer,
  enforce,
  failure,
  field,
  g,
  keypair,
  label,
  ledger,
  type Network,
  openNetwork,
  point,
  type Request,
  record,
  stranger,
} from './host-fixture.ts'
import {
  bytes,
  confidentialBalance,
  delegationOf,
  delegationPayload,
  fund,
  mergeRequest,
  registerRequest,
  revokeRequest,
  setSpenderRequest,
  spenderTransferPayload,
  spenderTransferRequest,
  transferRequest,
} from './host-payload.ts'

const [owner, spender, payee] = [employer, contractor, stranger]
const hex = (value: Uint8Array | undefined) => Buffer.from(value ?? []).toString('hex')

/** All three are registered; the owner has 1,000 base units to spend. */
let network: Network
beforeEach(() => {
  network = openNetwork()
  fund(network, owner, spender)
  apply(network, registerRequest(network, payee, 41n))
})

const delegate = (fields: Partial<Parameters<typeof setSpenderRequest>[1]> = {}) =>
  setSpenderRequest(network, { owner, spender, ...fields })
const pay = (fields: Partial<Parameters<typeof spenderTransferRequest>[1]> = {}) =>
  spenderTransferRequest(network, { owner, spender, to: payee, ...fields })
/** The failure of a call in which some arguments are replaced. */
const failureWith = (request: Request, replaced: Record<number, xdr.ScVal>, source = request.source) =>
  failure(network, { ...request, source, args: request.args.map((argument, index) => replaced[index] ?? argument) })
const entryOf = () =>
  network.state.get(delegationKey(network.contracts.token, owner.publicKey(), spender.publicKey()).id)
const isSpender = () => {
  const args = [g(owner), g(spender)]
  const result = record(network, { source: payee, contract: network.contracts.token, name: 'is_spender', args })
  return result.ok && scValToNative(result.returnValue)
}
const eventsOf = ({ events }: { events: xdr.ContractEvent[] }) =>
  events.map(({ body }) => [body.value.topics.map((topic) => scValToNative(topic)), scValToNative(body.value.data)])
const declared = ({ instructions }: { instructions: number }) => Math.floor(instructions * 1.04)
const overField = Uint8Array.from(Buffer.from(FIELD.toString(16).padStart(64, '0'), 'hex'))

describe('set_spender', () => {
  it('moves the allowance into a separate entry, for a week', () => {
    const { a_tilde, c_a, sigma_a, escrowed_dvk } = delegationPayload()
    const result = apply(network, delegate())
    expect(hex(confidentialBalance(network, owner).spendable_commitment)).toBe(hex(point(500n)))
    const delegation = delegationOf(network, owner, spender)
    expect(Object.keys(delegation)).toEqual([
      'a_tilde',
      'allowance_commitment',
      'allowance_salt',
      'escrowed_dvk',
      'live_until_ledger',
    ])
    const stored = [delegation.a_tilde, delegation.allowance_commitment, delegation.allowance_salt]
    expect([...stored, delegation.escrowed_dvk].map(hex)).toEqual([a_tilde, c_a, sigma_a, escrowed_dvk].map(hex))
    expect(delegation.live_until_ledger).toBe(2_000)
    expect(entryOf()?.liveUntil).toBe(ledger.sequence + 120_960 - 1)
    const key = xdr.LedgerKey.fromXdr(entryOf()?.key ?? '', 'base64')
    if (key.type !== 'contractData') throw new Error('not contract data')
    expect(scValToNative(key.contractData.key)).toEqual(['Delegation', owner.publicKey(), spender.publicKey()])
    expect(isSpender()).toBe(true)
    const [[topics, data] = []] = eventsOf(result)
    expect(topics).toEqual(['set_spender', owner.publicKey(), spender.publicKey()])
    expect(Object.keys(data)).toEqual([
      'b_tilde',
      'b_tilde_aud_s',
      'live_until_ledger',
      'r_a_tilde_aud_s',
      'r_e_point',
      'r_tilde_aud_s',
      'sigma',
      'v_tilde_aud_s',
    ])
    expect(Math.abs(declared(result) / 102_800_000 - 1)).toBeLessThan(0.02)
  })

  it('stores an expiry in the past, which blocks the pair until it is revoked', () => {
    apply(network, delegate({ liveUntil: 1 }))
    expect(isSpender()).toBe(false)
    expect(failure(network, delegate())).toBe('Error(Contract, #3503)')
    apply(network, revokeRequest(network, owner, spender))
    expect(failure(network, delegate())).toBe('')
  })

  it('checks in the order of the released contract', () => {
    const request = delegate()
    const nobody = g(keypair('nobody'))
    expect(failureWith(request, { 1: nobody, 3: bytes(new Uint8Array(8)) })).toBe('Error(Contract, #3507)')
    expect(failureWith(request, { 1: nobody })).toBe('Error(Contract, #3501)')
    const malformed = { ...delegationPayload(), sigma_a: overField }
    expect(failure(network, delegate({ payload: malformed }))).toBe('Error(Contract, #3514)')
    expect(failureWith(request, { 1: g(payee) })).toBe('Error(Contract, #3506)')
    apply(network, request)
    expect(failure(network, request)).toBe('Error(Contract, #3506)')
    expect(failure(network, delegate())).toBe('Error(Contract, #3503)')
  })

  it('needs the authorization of the owner', () => {
    const request = delegate()
    expect(label(enforce(network, { ...request, source: spender }, { auth: [] }))).toBe('Error(Auth, InvalidAction)')
  })
})

describe('confidential_transfer_from', () => {
  beforeEach(() => {
    apply(network, delegate())
  })

  it('pays from the allowance without changing the balance of its owner', () => {
    const before = confidentialBalance(network, owner)
    const { c_a_new, a_tilde_new, sigma_a_new, c_transfer } = spenderTransferPayload()
    const result = apply(network, pay())
    expect(confidentialBalance(network, owner)).toEqual(before)
    expect(hex(confidentialBalance(network, payee).receiving_commitment)).toBe(hex(c_transfer))
    const delegation = delegationOf(network, owner, spender)
    const stored = [delegation.allowance_commitment, delegation.a_tilde, delegation.allowance_salt]
    expect(stored.map(hex)).toEqual([c_a_new, a_tilde_new, sigma_a_new].map(hex))
    expect(hex(delegation.escrowed_dvk)).toBe(hex(delegationPayload().escrowed_dvk))
    expect(delegation.live_until_ledger).toBe(2_000)
    const [[topics, data] = []] = eventsOf(result)
    expect(topics).toEqual(['spender_transfer', spender.publicKey(), owner.publicKey(), payee.publicKey()])
    expect(Object.keys(data)).toEqual([
      'a_tilde_aud_s',
      'r_e_point',
      'r_tilde_aud_r',
      'r_tilde_aud_s',
      'sigma_a_new',
      'v_tilde',
      'v_tilde_aud_r',
      'v_tilde_aud_s',
    ])
    expect(Math.abs(declared(result) / 102_800_000 - 1)).toBeLessThan(0.02)
    // Each applied read with less than 29 days left extends the entry to 30 days.
    expect(entryOf()?.liveUntil).toBe(ledger.sequence + 518_400)
  })

  it('depends on the allowance, not on the balances of owner and spender', () => {
    const first = pay()
    apply(network, transferRequest(network, { from: owner, to: payee }))
    apply(network, mergeRequest(network, owner))
    apply(network, mergeRequest(network, spender))
    apply(network, first)
    expect(failure(network, first)).toBe('Error(Contract, #3506)')
    expect(failure(network, pay({ payload: { ...spenderTransferPayload(), sigma_a_new: field(99) } }))).toBe('')
  })

  it('needs only the authorization of the spender', () => {
    const request = pay()
    expect(label(enforce(network, { ...request, source: owner }, { auth: [] }))).toBe('Error(Auth, InvalidAction)')
    const recorded = record(network, request)
    expect(recorded.ok && recorded.auth).toHaveLength(1)
  })

  it('checks in the order of the released contract', () => {
    const request = pay()
    const nobody = g(keypair('nobody'))
    expect(failureWith(request, { 1: g(payee), 3: bytes(new Uint8Array(8)) })).toBe('Error(Contract, #3507)')
    expect(failureWith(request, { 1: g(payee), 2: nobody })).toBe('Error(Contract, #3504)')
    expect(failureWith(request, { 2: nobody })).toBe('Error(Contract, #3501)')
    const malformed = { ...spenderTransferPayload(), v_tilde: overField }
    expect(failure(network, pay({ payload: malformed }))).toBe('Error(Contract, #3514)')
    expect(failureWith(request, { 2: g(owner) })).toBe('Error(Contract, #3506)')
  })

  it('works up to the last ledger of the delegation, and not after it', () => {
    const request = pay()
    const inLedger = (sequence: number) => {
      const recorded = record(network, request)
      if (!recorded.ok) throw new Error(recorded.error)
      const state = network.state.fork()
      return label(enforce({ ...network, state }, request, { auth: recorded.auth, ledger: { ...ledger, sequence } }))
    }
    expect(inLedger(2_000)).toBe('')
    expect(inLedger(2_001)).toBe('Error(Contract, #3505)')
  })
})

describe('revoke_spender', () => {
  it('adds the rest of the allowance to the spendable balance and removes the entry', () => {
    apply(network, delegate())
    apply(network, pay())
    const { a_tilde_new, sigma_a_new } = spenderTransferPayload()
    const result = apply(network, revokeRequest(network, owner, spender))
    expect(hex(confidentialBalance(network, owner).spendable_commitment)).toBe(hex(point(800n)))
    expect(entryOf()).toBeUndefined()
    expect(isSpender()).toBe(false)
    const [[topics, data] = []] = eventsOf(result)
    expect(topics).toEqual(['revoke_spender', owner.publicKey(), spender.publicKey()])
    expect([hex(data.a_tilde), hex(data.allowance_salt)]).toEqual([a_tilde_new, sigma_a_new].map(hex))
    expect(Object.keys(data)).toEqual(['a_tilde', 'allowance_salt'])
  })

  it('works after the expiry', () => {
    apply(network, delegate({ liveUntil: 1 }))
    expect(failure(network, revokeRequest(network, owner, spender))).toBe('')
  })

  it('checks the account first, then the delegation', () => {
    const request = revokeRequest(network, owner, spender)
    expect(failure(network, request)).toBe('Error(Contract, #3504)')
    const nobody = keypair('nobody')
    expect(failureWith(request, { 0: g(nobody) }, nobody)).toBe('Error(Contract, #3501)')
  })
})

it('returns #3401 on a ledger whose verifier has no keys for delegations', () => {
  const bare = openNetwork({ delegations: false })
  fund(bare, owner, spender)
  const request = setSpenderRequest(bare, { owner, spender })
  expect(failure(bare, request)).toBe('Error(Contract, #3401)')
  expect(failure(bare, transferRequest(bare, { from: owner, to: spender }))).toBe('')
})
