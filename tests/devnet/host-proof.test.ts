import { createHash } from 'node:crypto'
import { StrKey } from '@stellar/stellar-sdk'
import { describe, expect, it } from 'vitest'
import { prover, registerProof, transferProof, withdrawProof } from '#lib/devnet/host/token/stand-in.ts'

const token = StrKey.encodeContract(new Uint8Array(32).fill(1))
const account = StrKey.encodeEd25519PublicKey(new Uint8Array(32).fill(2))
const sha256 = (...parts: (Uint8Array | string)[]) => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest('hex')
}
const point = (fill: number) => new Uint8Array(64).fill(fill)
const field = (fill: number) => new Uint8Array(32).fill(fill)
const digest = (text: string) => createHash('sha256').update(text).digest()
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

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
const transfer = {
  token,
  spendable: point(21),
  spendingKey: point(22),
  viewingKey: point(23),
  auditorRecipient: point(24),
  auditorSender: point(25),
  payload,
}
const withdraw = {
  token,
  spendable: point(21),
  spendingKey: point(22),
  amount: 258n,
  auditorSender: point(24),
  payload,
}
const register = { token, account, y: point(31), pvk: point(32) }

describe('a stand-in proof', () => {
  it('is 14,592 bytes, zero after the digest', () => {
    for (const proof of [registerProof(register), transferProof(transfer), withdrawProof(withdraw)]) {
      expect(proof).toHaveLength(14_592)
      expect(proof.subarray(32).every((byte) => byte === 0)).toBe(true)
    }
  })

  it('of a transfer hashes the tag, the state, the keys and the payload in their order', () => {
    const { c_spend_new, c_transfer, r_e_point, v_tilde, b_tilde, sigma } = payload
    const { v_tilde_aud_r, r_tilde_aud_r, v_tilde_aud_s, b_tilde_aud_s, r_tilde_aud_s } = payload
    const state = [point(21), point(22), point(23), digest(token), point(24), point(25)]
    const hidden = [c_spend_new, c_transfer, r_e_point, v_tilde, b_tilde, sigma]
    const audited = [v_tilde_aud_r, r_tilde_aud_r, v_tilde_aud_s, b_tilde_aud_s]
    expect(hex(transferProof(transfer).subarray(0, 32))).toBe(
      sha256('transfer', ...state, ...hidden, ...audited, r_tilde_aud_s),
    )
    const { r_tilde_aud_s: _, ...earlier } = payload
    expect(hex(transferProof({ ...transfer, payload: earlier }).subarray(0, 32))).toBe(
      sha256('transfer', ...state, ...hidden, ...audited),
    )
  })

  it('of a registration hashes the tag, both addresses and both keys', () => {
    expect(hex(registerProof(register).subarray(0, 32))).toBe(
      sha256('register', digest(token), digest(account), point(31), point(32)),
    )
  })

  it('of a withdrawal hashes the amount as 32 bytes', () => {
    const amount = new Uint8Array(32)
    amount.set([1, 2], 30)
    const { c_spend_new, r_e_point, sigma, b_tilde, b_tilde_aud_s, r_tilde_aud_s } = payload
    expect(hex(withdrawProof(withdraw).subarray(0, 32))).toBe(
      sha256(
        'withdraw',
        point(21),
        point(22),
        digest(token),
        amount,
        c_spend_new,
        r_e_point,
        sigma,
        b_tilde,
        b_tilde_aud_s,
        r_tilde_aud_s,
      ),
    )
  })

  it('is what the prover gives, whatever the witness', async () => {
    const witness = { sk: 1n, vk: 2n }
    expect(hex(await prover.prove({ circuit: 'transfer', ...transfer }))).toBe(hex(transferProof(transfer)))
    expect(hex(await prover.prove({ circuit: 'withdraw', ...withdraw }))).toBe(hex(withdrawProof(withdraw)))
    expect(hex(await prover.prove({ circuit: 'register', ...register, witness }))).toBe(hex(registerProof(register)))
  })
})
