import { describe, expect, test } from 'vitest'
import { commit, opens } from '#lib/wallet/commitment.ts'
import { decryptAllowance, decryptBalance, decryptTransfer } from '#lib/wallet/decryption.ts'
import { encryptDelegatedTransfer, encryptDelegation, openDelegation } from '#lib/wallet/delegation.ts'
import type { Payload } from '#lib/wallet/encryption.ts'
import { encodePoint } from '#lib/wallet/grumpkin.ts'
import { deriveDelegationKey, drawSalt } from '#lib/wallet/keys.ts'
import { auditor, holder, seeded } from './fixtures.ts'

const [owner, spender, payee, stranger] = ['owner', 'spender', 'payee', 'stranger'].map((name) => holder(name)) as [
  ReturnType<typeof holder>,
  ReturnType<typeof holder>,
  ReturnType<typeof holder>,
  ReturnType<typeof holder>,
]
const { key } = auditor('auditor')
const random = seeded('delegations')

const field = (payload: Payload, name: string) => payload[name] ?? new Uint8Array()

function delegate(amount = 60n, opening = { value: 100n, blinding: 7n }) {
  const allowanceSalt = drawSalt(random)
  const encrypted = encryptDelegation({
    keys: owner.keys,
    opening,
    amount,
    auditorSender: key,
    salt: drawSalt(random),
    spender: spender.address,
    spenderKey: spender.keys.spendingKey,
    allowanceSalt,
  })
  const { payload } = encrypted
  const entry = {
    escrowed_dvk: field(payload, 'escrowed_dvk'),
    a_tilde: field(payload, 'a_tilde'),
    allowance_salt: field(payload, 'sigma_a'),
    allowance_commitment: field(payload, 'c_a'),
  }
  return { ...encrypted, allowanceSalt, entry }
}

/** The payment of `amount` that the spender makes, from the entry alone. */
function pay({ entry, allowanceSalt }: ReturnType<typeof delegate>, amount: bigint, salt = drawSalt(random)) {
  const opened = openDelegation(spender.keys, spender.address, entry)
  if (!opened) throw new Error('not the delegation of this spender')
  const encrypted = encryptDelegatedTransfer({
    keys: spender.keys,
    ...opened,
    allowanceSalt,
    salt,
    amount,
    viewingKey: payee.keys.viewingKey,
    auditorRecipient: key,
    auditorSender: key,
  })
  const { payload } = encrypted
  const next = {
    ...entry,
    a_tilde: field(payload, 'a_tilde_new'),
    allowance_salt: field(payload, 'sigma_a_new'),
    allowance_commitment: field(payload, 'c_a_new'),
  }
  return { ...encrypted, entry: next, allowanceSalt: salt }
}

describe('a delegation', () => {
  test('leaves the owner the rest of its balance, and can be opened by owner and spender', () => {
    const { payload, next, allowance, entry } = delegate()
    expect(decryptBalance(owner.keys.vk, payload)).toEqual(next)
    expect(next.value).toBe(40n)
    expect(allowance.value).toBe(60n)
    const delegationKey = deriveDelegationKey(owner.keys.vk, spender.address)
    expect(decryptAllowance(delegationKey, entry)).toEqual(allowance)
    expect(openDelegation(spender.keys, spender.address, entry)).toEqual({ delegationKey, allowance })
  })

  test('can be opened by its spender for either sign of the ephemeral key', () => {
    // The sign is random: twenty delegations have both.
    for (let round = 0; round < 20; round += 1) {
      expect(openDelegation(spender.keys, spender.address, delegate().entry)?.allowance.value).toBe(60n)
    }
  })

  test('cannot be opened with other keys', () => {
    const { entry } = delegate()
    expect(openDelegation(stranger.keys, spender.address, entry)).toBeUndefined()
    expect(openDelegation(owner.keys, spender.address, entry)).toBeUndefined()
    expect(openDelegation(spender.keys, stranger.address, entry)).toBeUndefined()
  })

  test('is rejected for more than the balance and for a negative amount', () => {
    expect(() => delegate(101n)).toThrow(expect.objectContaining({ code: 'balance-too-low' }))
    expect(() => delegate(-1n)).toThrow(expect.objectContaining({ code: 'malformed' }))
  })
})

describe('a delegated transfer', () => {
  test('is received like a transfer, and leaves an allowance that owner and spender can open', () => {
    const first = pay(delegate(), 25n)
    const { sigma_a_new, ...published } = first.payload
    expect(decryptTransfer(payee.keys.vk, { ...published, sigma_a_new })).toEqual(first.transferred)
    expect(opens(first.transferred, field(first.payload, 'c_transfer'))).toBe(true)
    expect(first.next.value).toBe(35n)
    expect(encodePoint(commit(first.next))).toEqual(first.entry.allowance_commitment)
    expect(openDelegation(spender.keys, spender.address, first.entry)?.allowance).toEqual(first.next)
    const rest = decryptAllowance(deriveDelegationKey(owner.keys.vk, spender.address), first.entry)
    expect(rest).toEqual(first.next)
  })

  test('cannot be decrypted by owner or spender from its event', () => {
    const { payload } = pay(delegate(), 25n)
    for (const { keys } of [owner, spender, stranger]) expect(decryptTransfer(keys.vk, payload)).toBeUndefined()
  })

  test('is rejected for more than the allowance, and for the previous salt', () => {
    const delegation = delegate()
    expect(() => pay(delegation, 61n)).toThrow(expect.objectContaining({ code: 'balance-too-low' }))
    expect(() => pay(delegation, 1n, delegation.allowanceSalt)).toThrow('the salt of an allowance must be new')
  })

  test('shares no ciphertext with another transfer of the same amount', () => {
    const delegation = delegate()
    const [left, right] = [pay(delegation, 5n).payload, pay(delegation, 5n).payload]
    for (const name of Object.keys(left)) expect(field(left, name)).not.toEqual(field(right, name))
  })
})
