import { createHash } from 'node:crypto'
import { StrKey } from '@stellar/stellar-sdk'
import { describe, expect, it, vi } from 'vitest'
import { loadWhenNeeded, ProofUnchecked, rememberVerdicts } from '#lib/devnet/host/proofs.ts'
import { prover, standIn, verifyStandIn } from '#lib/prover/stand-in.ts'
import { encodeField, encodePoint, G, multiply } from '#lib/wallet/grumpkin.ts'
import { addressToField } from '#lib/wallet/keys.ts'
import type { Statement } from '#lib/wallet/prover.ts'
import { publicInputs } from '#lib/wallet/statement.ts'

const token = StrKey.encodeContract(new Uint8Array(32).fill(1))
const account = StrKey.encodeEd25519PublicKey(new Uint8Array(32).fill(2))
const point = (scalar: number) => encodePoint(multiply(G, BigInt(scalar)))
const field = (fill: number) => new Uint8Array(32).fill(fill)
const addressField = (address: string) => encodeField(addressToField(address))
const key = new Uint8Array(1_760)

const payload = {
  b_tilde: field(1),
  b_tilde_aud_s: field(2),
  c_spend_new: point(3),
  c_transfer: point(4),
  r_e_point: point(5),
  r_tilde_aud_r: field(6),
  r_tilde_aud_s: field(7),
  sigma: field(8),
  v_tilde: field(9),
  v_tilde_aud_r: field(10),
  v_tilde_aud_s: field(11),
}
const sender = { token, spendable: point(21), spendingKey: point(22), auditorSender: point(25) }
const transfer = {
  circuit: 'transfer',
  ...sender,
  viewingKey: point(23),
  auditorRecipient: point(24),
  payload,
} satisfies Statement
const withdraw = { circuit: 'withdraw', ...sender, amount: 258n, payload } satisfies Statement
const register = { circuit: 'register', token, account, y: point(31), pvk: point(32) } satisfies Statement

describe('computes the public inputs in the order of the circuits', () => {
  const { c_spend_new, c_transfer, r_e_point, v_tilde, b_tilde, sigma } = payload
  const { v_tilde_aud_r, r_tilde_aud_r, v_tilde_aud_s, b_tilde_aud_s, r_tilde_aud_s } = payload

  it('of a registration', () => {
    const expected = [point(31), point(32), addressField(token), addressField(account)]
    expect(Buffer.from(publicInputs(register))).toEqual(Buffer.concat(expected))
  })

  it('of a transfer, even of an older interface without the last field', () => {
    const state = [point(21), point(22), point(23), addressField(token), point(24), point(25)]
    const hidden = [c_spend_new, c_transfer, r_e_point, v_tilde, b_tilde, sigma]
    const audited = [v_tilde_aud_r, r_tilde_aud_r, v_tilde_aud_s, b_tilde_aud_s]
    const expected = Buffer.concat([...state, ...hidden, ...audited, r_tilde_aud_s])
    expect(Buffer.from(publicInputs(transfer))).toEqual(expected)
    const { r_tilde_aud_s: _, ...older } = payload
    expect(Buffer.from(publicInputs({ ...transfer, payload: older }))).toEqual(expected.subarray(0, -32))
  })

  it('of a withdrawal', () => {
    const state = [point(21), point(22), addressField(token), point(25), encodeField(258n)]
    const expected = [...state, c_spend_new, sigma, b_tilde, r_e_point, b_tilde_aud_s, r_tilde_aud_s]
    expect(Buffer.from(publicInputs(withdraw))).toEqual(Buffer.concat(expected))
  })
})

describe('computes the public inputs', () => {
  const delegation = {
    ...payload,
    c_a: point(41),
    escrowed_dvk: new Uint8Array(64).fill(42),
    a_tilde: field(43),
    sigma_a: field(44),
    r_a_tilde_aud_s: field(45),
  }
  const setSpender = {
    circuit: 'set_spender',
    ...sender,
    spender: account,
    spenderKey: point(46),
    payload: delegation,
  } satisfies Statement
  const spenderTransfer = {
    circuit: 'spender_transfer',
    allowance: point(41),
    allowanceSalt: field(44),
    spenderKey: point(46),
    viewingKey: point(23),
    auditorRecipient: point(24),
    auditorSender: point(25),
    payload: {
      ...payload,
      c_a_new: point(47),
      a_tilde_new: field(48),
      sigma_a_new: field(49),
      a_tilde_aud_s: field(50),
    },
  } satisfies Statement

  it('of set_spender, 26 words', () => {
    const state = [point(21), point(22), point(46), addressField(account), addressField(token), point(25)]
    const { c_spend_new, c_a, escrowed_dvk, b_tilde, a_tilde, sigma, sigma_a, r_e_point } = delegation
    const { v_tilde_aud_s, b_tilde_aud_s, r_tilde_aud_s, r_a_tilde_aud_s } = delegation
    const published = [c_spend_new, c_a, escrowed_dvk, b_tilde, a_tilde, sigma, sigma_a, r_e_point]
    const audited = [v_tilde_aud_s, b_tilde_aud_s, r_tilde_aud_s, r_a_tilde_aud_s]
    const inputs = Buffer.from(publicInputs(setSpender))
    expect(inputs).toEqual(Buffer.concat([...state, ...published, ...audited]))
    expect(inputs).toHaveLength(26 * 32)
  })

  it('of spender_transfer, 25 words', () => {
    const state = [point(41), field(44), point(46), point(23), point(24), point(25)]
    const { c_a_new, c_transfer, r_e_point, v_tilde, a_tilde_new, sigma_a_new } = spenderTransfer.payload
    const { v_tilde_aud_r, r_tilde_aud_r, v_tilde_aud_s, a_tilde_aud_s, r_tilde_aud_s } = spenderTransfer.payload
    const published = [c_a_new, c_transfer, r_e_point, v_tilde, a_tilde_new, sigma_a_new]
    const audited = [v_tilde_aud_r, r_tilde_aud_r, v_tilde_aud_s, a_tilde_aud_s, r_tilde_aud_s]
    const inputs = Buffer.from(publicInputs(spenderTransfer))
    expect(inputs).toEqual(Buffer.concat([...state, ...published, ...audited]))
    expect(inputs).toHaveLength(25 * 32)
  })
})

describe('a stand-in proof', () => {
  it('is the digest of circuit and public inputs, followed by zeros', async () => {
    for (const statement of [register, transfer, withdraw]) {
      const proof = standIn(statement)
      const digest = createHash('sha256').update(statement.circuit).update(publicInputs(statement)).digest()
      expect(proof).toHaveLength(14_592)
      expect(Buffer.from(proof.subarray(0, 32))).toEqual(digest)
      expect(proof.subarray(32).every((byte) => byte === 0)).toBe(true)
      expect(await prover.prove(statement)).toEqual(proof)
      expect(verifyStandIn(statement.circuit, publicInputs(statement), proof, key)).toBe(true)
    }
  })

  it('is rejected for another statement or circuit, with a byte after the digest, or truncated', () => {
    const proof = standIn(register)
    const inputs = publicInputs(register)
    expect(verifyStandIn('register', publicInputs({ ...register, y: point(33) }), proof, key)).toBe(false)
    expect(verifyStandIn('transfer', inputs, proof, key)).toBe(false)
    expect(verifyStandIn('register', inputs, proof.with(14_591, 1), key)).toBe(false)
    expect(verifyStandIn('register', inputs, proof.subarray(0, 14_591), key)).toBe(false)
  })
})

describe('a stand-in proof of a statement that no circuit accepts', () => {
  const [identity, offCurve] = [new Uint8Array(64), new Uint8Array(64).fill(1)]
  it.each<[string, Statement, boolean]>([
    ['a registered key off the curve', { ...register, y: offCurve }, false],
    ['the identity as a registered key', { ...register, pvk: identity }, false],
    ['an ephemeral key that is the identity', { ...transfer, payload: { ...payload, r_e_point: identity } }, false],
    ['a commitment off the curve', { ...withdraw, payload: { ...payload, c_spend_new: offCurve } }, false],
    ['a commitment that is the identity', { ...withdraw, payload: { ...payload, c_spend_new: identity } }, true],
  ])('is verified like a proof: %s', (_, statement, isValid) => {
    expect(verifyStandIn(statement.circuit, publicInputs(statement), standIn(statement), key)).toBe(isValid)
  })
})

describe('the cache of verification results', () => {
  it('verifies each proof once', () => {
    const verify = vi.fn((_circuit: string, _inputs: Uint8Array, proof: Uint8Array) => proof[0] === 1)
    const remembering = rememberVerdicts(verify)
    for (const first of [1, 0, 1, 0]) {
      expect(remembering('register', field(1), new Uint8Array([first]), key)).toBe(first === 1)
    }
    expect(verify).toHaveBeenCalledTimes(2)
  })

  it('distinguishes circuit, inputs, proof and key, and their boundaries', () => {
    const verify = vi.fn(() => true)
    const remembering = rememberVerdicts(verify)
    remembering('register', field(1), field(2), key)
    remembering('transfer', field(1), field(2), key)
    remembering('register', field(3), field(2), key)
    remembering('register', field(1), field(4), key)
    remembering('register', field(1), field(2), key.with(0, 1))
    remembering('register', new Uint8Array([...field(1), 2]), field(2).subarray(1), key)
    expect(verify).toHaveBeenCalledTimes(6)
  })

  it('drops the oldest results, so memory stays bounded', () => {
    const verify = vi.fn(() => true)
    const remembering = rememberVerdicts(verify)
    for (let one = 0; one <= 4_096; one += 1) remembering('register', encodeField(BigInt(one)), field(2), key)
    remembering('register', encodeField(4_096n), field(2), key)
    expect(verify).toHaveBeenCalledTimes(4_097)
    remembering('register', encodeField(0n), field(2), key)
    expect(verify).toHaveBeenCalledTimes(4_098)
  })
})

describe('a verifier that fails', () => {
  it('returns no result, and is replaced', async () => {
    const fresh = vi.fn(() => true)
    const damaged = vi.fn(() => {
      throw new Error('unreachable')
    })
    const load = vi.fn(async () => (load.mock.calls.length === 1 ? damaged : fresh))
    const { verify, ready } = loadWhenNeeded(load)
    const ask = () => verify('register', field(1), field(2), key)
    await Promise.all([ready(), ready()])
    expect(load).toHaveBeenCalledTimes(1)
    expect(ask).toThrow(ProofUnchecked)
    // It is replaced without waiting for a request.
    expect(load).toHaveBeenCalledTimes(2)
    expect(ask).toThrow(ProofUnchecked)
    await ready()
    expect([ask(), ask()]).toEqual([true, true])
    expect([damaged, fresh, load].map(({ mock }) => mock.calls.length)).toEqual([1, 1, 2])
  })

  it('is not given a proof again after failing on it twice, and continues with others', async () => {
    const failing = vi.fn((_circuit: string, _inputs: Uint8Array, proof: Uint8Array) => {
      if (proof[31] === 2) throw new RangeError('unreachable')
      return true
    })
    const { verify, ready } = loadWhenNeeded(async () => failing)
    const ask = (proof: number) => verify('register', field(1), field(proof), key)
    await ready()
    expect(() => ask(2)).toThrow(ProofUnchecked)
    await ready()
    expect(() => ask(2)).toThrow(RangeError)
    await ready()
    expect(() => ask(2)).toThrow(RangeError)
    expect(ask(3)).toBe(true)
    expect(failing).toHaveBeenCalledTimes(3)
  })

  it('is loaded again after a failed load', async () => {
    const load = vi.fn(async () => {
      if (load.mock.calls.length === 1) throw new Error('no memory')
      return () => true
    })
    const { verify, ready } = loadWhenNeeded(load)
    await expect(ready()).rejects.toThrow('no memory')
    await ready()
    expect(verify('register', field(1), field(2), key)).toBe(true)
  })
})
