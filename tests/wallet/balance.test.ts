import { describe, expect, test } from 'vitest'
import { applyEvent, type Balance, EMPTY } from '#lib/wallet/balance.ts'
import { commit, opens } from '#lib/wallet/commitment.ts'
import { encryptTransfer, encryptWithdrawal, type Payload } from '#lib/wallet/encryption.ts'
import type { AccountEvent } from '#lib/wallet/events.ts'
import {
  add,
  decodePoint,
  encodeField,
  encodePoint,
  FIELD,
  G,
  IDENTITY,
  multiply,
  type Point,
} from '#lib/wallet/grumpkin.ts'
import { addressToField, drawSalt, type Holder } from '#lib/wallet/keys.ts'
import { hash, TAG } from '#lib/wallet/poseidon.ts'
import { auditor, holder, seeded } from './fixtures.ts'

const employer = holder('employer')
const contractor = holder('contractor')
const { key } = auditor('auditor')
const random = seeded('balances')

/** The commitments of the contract, and the wallet's openings. */
function account(of: Holder) {
  const { address } = of
  const state = { spendable: IDENTITY as Point, receiving: IDENTITY as Point, balance: EMPTY as Balance }
  return {
    address,
    state,
    see(name: string, addresses: string[], fields: AccountEvent['fields'] = {}) {
      const event = { id: '', name, addresses, fields, transaction: '' }
      state.balance = applyEvent(of, state.balance, event)
    },
    expectBalance(spendable: bigint, receiving: bigint) {
      expect(state.balance.spendable.value).toBe(spendable)
      expect(state.balance.receiving.value).toBe(receiving)
      expect(opens(state.balance.spendable, encodePoint(state.spendable))).toBe(true)
      expect(opens(state.balance.receiving, encodePoint(state.receiving))).toBe(true)
    },
  }
}
type Tracked = ReturnType<typeof account>

function deposit(to: Tracked, amount: bigint) {
  to.state.receiving = add(to.state.receiving, multiply(G, amount))
  to.see('deposit', ['GISSUER', to.address], { amount })
}

function merge(of: Tracked) {
  of.state.spendable = add(of.state.spendable, of.state.receiving)
  of.state.receiving = IDENTITY
  of.see('merge', [of.address])
}

function transfer(from: Tracked, sender: Holder, to: Tracked, recipient: Holder, amount: bigint) {
  const { payload } = encryptTransfer({
    keys: sender.keys,
    opening: from.state.balance.spendable,
    amount,
    viewingKey: recipient.keys.viewingKey,
    auditorRecipient: key,
    auditorSender: key,
    salt: drawSalt(random),
  })
  from.state.spendable = point(payload, 'c_spend_new')
  to.state.receiving = add(to.state.receiving, point(payload, 'c_transfer'))
  const { c_spend_new, c_transfer, ...emitted } = payload
  for (const party of new Set([from, to])) party.see('transfer', [from.address, to.address], emitted)
}

const point = (payload: Payload, name: string) => decodePoint(payload[name] ?? new Uint8Array())

describe('a balance follows the events', () => {
  test('of an employer: deposits, merges and outgoing transfers', () => {
    const [from, to] = [account(employer), account(contractor)]
    deposit(from, 700n)
    deposit(from, 300n)
    from.expectBalance(0n, 1000n)
    merge(from)
    from.expectBalance(1000n, 0n)
    transfer(from, employer, to, contractor, 250n)
    transfer(from, employer, to, contractor, 50n)
    from.expectBalance(700n, 0n)
    deposit(from, 5n)
    from.expectBalance(700n, 5n)
    transfer(from, employer, to, contractor, 700n)
    from.expectBalance(0n, 5n)
    merge(from)
    from.expectBalance(5n, 0n)
  })

  test('of a contractor: incoming transfers, one merge of several, a withdrawal', () => {
    const [from, to] = [account(employer), account(contractor)]
    deposit(from, 1000n)
    merge(from)
    for (const amount of [1n, 20n, 300n]) transfer(from, employer, to, contractor, amount)
    to.expectBalance(0n, 321n)
    merge(to)
    to.expectBalance(321n, 0n)
    transfer(from, employer, to, contractor, 9n)
    to.expectBalance(321n, 9n)
    const { payload } = encryptWithdrawal({
      keys: contractor.keys,
      opening: to.state.balance.spendable,
      amount: 21n,
      auditorSender: key,
      salt: drawSalt(random),
    })
    to.state.spendable = point(payload, 'c_spend_new')
    const { c_spend_new, ...emitted } = payload
    to.see('withdraw', [to.address, to.address], { ...emitted, amount: 21n })
    to.expectBalance(300n, 9n)
    merge(to)
    to.expectBalance(309n, 0n)
  })

  test('of a transfer to oneself', () => {
    const own = account(employer)
    deposit(own, 100n)
    merge(own)
    transfer(own, employer, own, employer, 30n)
    own.expectBalance(70n, 30n)
    merge(own)
    own.expectBalance(100n, 0n)
  })

  test('of an outgoing transfer alone, when earlier events are missing', () => {
    const [from, to] = [account(employer), account(contractor)]
    deposit(from, 100n)
    merge(from)
    const forgetful = account(employer)
    Object.assign(forgetful.state, from.state)
    const see = forgetful.see
    forgetful.see = (...event) => {
      forgetful.state.balance = EMPTY
      see(...event)
    }
    transfer(forgetful, employer, to, contractor, 40n)
    forgetful.expectBalance(60n, 0n)
  })

  test('of a delegated transfer, which credits the recipient only', () => {
    const [to, from] = [account(contractor), account(employer)]
    const { payload, transferred } = encryptTransfer({
      keys: holder('spender').keys,
      opening: { value: 100n, blinding: 1n },
      amount: 40n,
      viewingKey: contractor.keys.viewingKey,
      auditorRecipient: key,
      auditorSender: key,
      salt: drawSalt(random),
    })
    // The event has the salt of the allowance, and no balance of its owner.
    const { c_spend_new, c_transfer, sigma, b_tilde, b_tilde_aud_s, ...emitted } = payload
    const addresses = [holder('spender').address, from.address, to.address]
    for (const party of [to, from]) party.see('spender_transfer', addresses, { ...emitted, sigma_a_new: sigma })
    to.state.receiving = point(payload, 'c_transfer')
    to.expectBalance(0n, 40n)
    expect(to.state.balance.receiving).toEqual(transferred)
    from.expectBalance(0n, 0n)
  })

  test('of a delegation, and adds the remainder when it is revoked', () => {
    const own = account(employer)
    deposit(own, 100n)
    merge(own)
    const spender = contractor.address
    const { payload } = encryptWithdrawal({
      keys: employer.keys,
      opening: own.state.balance.spendable,
      amount: 60n,
      auditorSender: key,
      salt: drawSalt(random),
    })
    own.state.spendable = point(payload, 'c_spend_new')
    const { c_spend_new, ...emitted } = payload
    own.see('set_spender', [own.address, spender], { ...emitted, live_until_ledger: 9 })
    own.expectBalance(40n, 0n)
    const { entry, commitment } = allowance(25n)
    own.state.spendable = add(own.state.spendable, commitment)
    own.see('revoke_spender', [own.address, spender], entry)
    own.expectBalance(65n, 0n)
  })

  /** A delegation from the employer to the contractor: fields of its entry, and its commitment. */
  function allowance(value: bigint) {
    const dvk = hash(TAG.delegationKey, employer.keys.vk, addressToField(contractor.address))
    const salt = drawSalt(random)
    const opening = { value, blinding: hash(TAG.allowanceBlinding, dvk, salt) }
    const a_tilde = encodeField((value + hash(TAG.allowance, dvk, salt)) % FIELD)
    return { entry: { a_tilde, allowance_salt: encodeField(salt) }, commitment: commit(opening) }
  }

  test('and ignores the revocation of a delegation for which the account is the spender', () => {
    const spender = account(contractor)
    deposit(spender, 10n)
    spender.see('revoke_spender', [employer.address, spender.address], allowance(25n).entry)
    spender.expectBalance(0n, 10n)
  })

  test('of a clawback, which merges and subtracts a public amount', () => {
    const [from, to] = [account(employer), account(contractor)]
    deposit(from, 1_000n)
    merge(from)
    for (const amount of [300n, 20n]) {
      transfer(from, employer, to, contractor, amount)
      if (amount === 300n) merge(to)
    }
    to.expectBalance(300n, 20n)
    to.state.spendable = add(add(to.state.spendable, to.state.receiving), multiply(G, 45n).negate())
    to.state.receiving = IDENTITY
    to.see('clawback', [to.address], { amount: 45n })
    to.expectBalance(275n, 0n)
  })

  test('and ignores events of other accounts', () => {
    const own = account(employer)
    deposit(own, 100n)
    const before = own.state.balance
    own.see('deposit', [own.address, contractor.address], { amount: 5n })
    own.see('paused', [own.address])
    expect(own.state.balance).toBe(before)
  })
})
