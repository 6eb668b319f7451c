import { describe, expect, test } from 'vitest'
import { AMOUNT_LIMIT, addOpenings, commit, NOTHING, type Opening, opens } from '#lib/wallet/commitment.ts'
import { decryptBalance, decryptTransfer } from '#lib/wallet/decryption.ts'
import { encryptTransfer, encryptWithdrawal, type Payload } from '#lib/wallet/encryption.ts'
import { add, decodePoint, encodePoint, FIELD, H, isCanonical, multiply } from '#lib/wallet/grumpkin.ts'
import { drawSalt } from '#lib/wallet/keys.ts'
import { hash, TAG } from '#lib/wallet/poseidon.ts'
import { auditRecipient, auditSender } from './auditor.ts'
import { auditor, hex, holder, seeded } from './fixtures.ts'

const employer = holder('employer').keys
const contractor = holder('contractor').keys
const stranger = holder('stranger').keys
const senders = auditor('auditor of senders')
const recipients = auditor('auditor of recipients')
const opening: Opening = { value: 5_000_0000000n, blinding: 123456789n }

function transfer(amount: bigint, seed = 'salt') {
  return encryptTransfer({
    keys: employer,
    opening,
    amount,
    viewingKey: contractor.viewingKey,
    auditorRecipient: recipients.key,
    auditorSender: senders.key,
    salt: drawSalt(seeded(seed)),
  })
}

describe('a transfer', () => {
  const amount = 1_234_5678901n
  const { payload, next, transferred, witness } = transfer(amount)

  test('has the eleven fields of interface 0.8.0, points and canonical fields', () => {
    const points = ['c_spend_new', 'c_transfer', 'r_e_point']
    const fields = 'b_tilde b_tilde_aud_s r_tilde_aud_r r_tilde_aud_s sigma v_tilde v_tilde_aud_r v_tilde_aud_s'.split(
      ' ',
    )
    expect(Object.keys(payload).toSorted()).toEqual([...points, ...fields].toSorted())
    for (const name of points) expect(() => decodePoint(field(payload, name))).not.toThrow()
    for (const name of fields) expect(isCanonical(field(payload, name))).toBe(true)
  })

  test('gives its recipient the opening of the transferred commitment', () => {
    const read = decryptTransfer(contractor.vk, payload)
    expect(read).toEqual(transferred)
    expect(read?.value).toBe(amount)
    expect(read && opens(read, field(payload, 'c_transfer'))).toBe(true)
  })

  test('gives its sender the opening of the new balance', () => {
    const read = decryptBalance(employer.vk, payload)
    expect(read).toEqual(next)
    expect(read?.value).toBe(opening.value - amount)
    expect(read && opens(read, field(payload, 'c_spend_new'))).toBe(true)
  })

  test('gives each auditor its part', () => {
    expect(auditRecipient(recipients.secret, payload)).toEqual(transferred)
    expect(auditSender(senders.secret, payload)).toEqual({ balance: next.value, blinding: next.blinding, amount })
  })

  test('cannot be decrypted with another key', () => {
    for (const vk of [stranger.vk, employer.vk, employer.sk, contractor.sk, senders.secret]) {
      expect(decryptTransfer(vk, payload)).toBeUndefined()
    }
    for (const vk of [stranger.vk, contractor.vk, recipients.secret])
      expect(decryptBalance(vk, payload)).toBeUndefined()
    for (const secret of [stranger.vk, senders.secret]) expect(auditRecipient(secret, payload)).toBeUndefined()
    for (const secret of [stranger.vk, recipients.secret]) expect(auditSender(secret, payload)).toBeUndefined()
  })

  test('comes with the witness of its public values', () => {
    expect(witness).toMatchObject({ sk: employer.sk, vk: employer.vk, v: opening.value, r: opening.blinding })
    expect(hex(encodePoint(multiply(H, witness.rE)))).toBe(hex(field(payload, 'r_e_point')))
    expect(hash(TAG.ephemeral, employer.vk, witness.sigma)).toBe(witness.rE)
  })

  test('shares no field with a transfer of the same amount under another salt', () => {
    const other = transfer(amount, 'another salt').payload
    for (const name of Object.keys(payload)) expect(hex(field(other, name))).not.toBe(hex(field(payload, name)))
  })

  test.each([0n, 1n, opening.value])('of %s base units is valid', (edge) => {
    const sent = transfer(edge)
    expect(decryptTransfer(contractor.vk, sent.payload)?.value).toBe(edge)
    expect(decryptBalance(employer.vk, sent.payload)?.value).toBe(opening.value - edge)
  })

  test('to oneself is valid', () => {
    const { payload: own } = encryptTransfer({
      keys: employer,
      opening,
      amount,
      viewingKey: employer.viewingKey,
      auditorRecipient: senders.key,
      auditorSender: senders.key,
      salt: 99n,
    })
    expect(decryptTransfer(employer.vk, own)?.value).toBe(amount)
    expect(auditRecipient(senders.secret, own)?.value).toBe(amount)
  })

  test('is rejected for more than the balance, a negative amount, or one out of range', () => {
    expect(() => transfer(opening.value + 1n)).toThrow('does not cover')
    expect(() => transfer(-1n)).toThrow('out of range')
    expect(() => transfer(AMOUNT_LIMIT)).toThrow('out of range')
  })

  test('is rejected for an invalid key', () => {
    const base = { keys: employer, opening, amount, salt: 5n }
    const good = { viewingKey: contractor.viewingKey, auditorRecipient: recipients.key, auditorSender: senders.key }
    for (const name of Object.keys(good)) {
      expect(() => encryptTransfer({ ...base, ...good, [name]: new Uint8Array(64) })).toThrow('identity')
      expect(() => encryptTransfer({ ...base, ...good, [name]: new Uint8Array(64).fill(1) })).toThrow('curve')
      expect(() => encryptTransfer({ ...base, ...good, [name]: new Uint8Array(32) })).toThrow('64 bytes')
    }
  })

  test('can also be decrypted by the field names of older variants', () => {
    const older = rename(payload, { r_e_point: 'r_e' })
    expect(decryptTransfer(contractor.vk, older)?.value).toBe(amount)
  })
})

test('only owner and auditor can decrypt the balance after a withdrawal', () => {
  const { payload, next } = encryptWithdrawal({
    keys: employer,
    opening,
    amount: 7n,
    auditorSender: senders.key,
    salt: drawSalt(seeded('withdrawal')),
  })
  expect(Object.keys(payload).toSorted()).toEqual(
    'b_tilde b_tilde_aud_s c_spend_new r_e_point r_tilde_aud_s sigma'.split(' '),
  )
  expect(decryptBalance(employer.vk, payload)).toEqual(next)
  expect(opens(next, field(payload, 'c_spend_new'))).toBe(true)
  expect(auditSender(senders.secret, payload)).toEqual({ balance: next.value, blinding: next.blinding })
  expect(decryptBalance(stranger.vk, payload)).toBeUndefined()
  expect(auditSender(recipients.secret, payload)).toBeUndefined()
})

describe('commitments', () => {
  test('add up like their openings', () => {
    const random = seeded('commitments')
    const draw = (): Opening => ({ value: BigInt(`0x${hex(random(15))}`), blinding: drawSalt(random) })
    const openings = Array.from({ length: 12 }, draw)
    const sum = openings.reduce(addOpenings, NOTHING)
    const point = openings.map(commit).reduce(add)
    expect(point.equals(commit(sum))).toBe(true)
    expect(opens(sum, encodePoint(point))).toBe(true)
    expect(opens({ ...sum, value: sum.value + 1n }, encodePoint(point))).toBe(false)
    expect(opens({ ...sum, blinding: sum.blinding + 1n }, encodePoint(point))).toBe(false)
  })

  test('of zero is the identity', () => {
    expect(opens(NOTHING, new Uint8Array(64))).toBe(true)
  })

  test('of a transfer conserve the value: before = after + transferred', () => {
    const { next, transferred } = transfer(42n)
    const difference = commit(opening).subtract(add(commit(next), commit(transferred)))
    expect(difference.equals(multiply(H, opening.blinding - next.blinding - transferred.blinding))).toBe(true)
  })
})

describe('a blinding in [FIELD, ORDER), which no circuit accepts', () => {
  const unspendable = { value: 1_000n, blinding: FIELD }
  const spending = { keys: employer, amount: 7n, auditorSender: senders.key, salt: 5n }
  const receiving = { viewingKey: contractor.viewingKey, auditorRecipient: recipients.key }

  test('is rejected before proving, with the remedy in the message', () => {
    for (const encrypt of [
      () => encryptWithdrawal({ ...spending, opening: unspendable }),
      () => encryptTransfer({ ...spending, ...receiving, opening: unspendable }),
    ]) {
      expect(encrypt).toThrow(
        'no proof can be made for the blinding of the spendable balance: receive a confidential transfer, merge it, and try again',
      )
      expect(encrypt).toThrow(expect.objectContaining({ code: 'unspendable' }))
    }
    expect(() => encryptWithdrawal({ ...spending, opening: { value: 1_000n, blinding: FIELD - 1n } })).not.toThrow()
  })

  test('leaves that range when a transfer is merged', () => {
    const { transferred } = transfer(42n)
    expect(() => encryptWithdrawal({ ...spending, opening: addOpenings(unspendable, transferred) })).not.toThrow()
  })
})

test('blindings are field elements, as the circuits require', () => {
  const { next, transferred } = transfer(42n)
  expect(next.blinding < FIELD && transferred.blinding < FIELD).toBe(true)
})

function field(payload: Payload, name: string): Uint8Array {
  const value = payload[name]
  if (!value) throw new Error(`no field ${name}`)
  return value
}

function rename(payload: Payload, names: Record<string, string | undefined>): Payload {
  const entries = Object.entries(payload).map(([name, value]) => [name in names ? names[name] : name, value] as const)
  return Object.fromEntries(entries.filter(([name]) => name !== undefined))
}
