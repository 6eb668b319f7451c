import { add, encodeField, encodePoint, FIELD, G, H, multiply, type Point } from '#lib/wallet/grumpkin.ts'
import { addressToField } from '#lib/wallet/keys.ts'
import { hash, lanes, TAG } from '#lib/wallet/poseidon.ts'
import type { RegisterStatement, TransferStatement, WithdrawStatement } from '#lib/wallet/prover.ts'

export const TOKEN = 'CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC'
export const ACCOUNT = 'GAAZI4TCR3TY5OJHCTJC2A4QSY6CJWJH5IAJTGKIN2ER7LBNVKOCCWN7'

/** The secrets of a spending. What a test does not name is as below. */
export interface Secrets {
  sk: bigint
  v: bigint
  r: bigint
  amount: bigint
  rE: bigint
  sigma: bigint
}

const SECRETS: Secrets = { sk: 1_234n, v: 1_000n, r: 55n, amount: 300n, rE: 777n, sigma: 4_242n }

const AUDITOR_SENDER = multiply(H, 91n)
const AUDITOR_RECIPIENT = multiply(H, 92n)
const PAYEE = multiply(H, 93n)

/** Values may be any field element here, also what no wallet would take. */
const commit = (value: bigint, blinding: bigint): Uint8Array =>
  encodePoint(add(multiply(G, value), multiply(H, blinding)))

const share = (scalar: bigint, key: Point): bigint => {
  const shared = multiply(key, scalar)
  const { x, y } = shared.is0() ? { x: 0n, y: 0n } : shared.toAffine()
  return hash(TAG.sharedSecret, x, y)
}

const field = (value: bigint): Uint8Array => encodeField(((value % FIELD) + FIELD) % FIELD)

/** The equations once more, step by step, so that a test can break one of them and keep all others. */
export function registration(sk: bigint): RegisterStatement {
  const vk = hash(TAG.viewingKey, sk, addressToField(TOKEN))
  const keys = { y: encodePoint(multiply(H, sk)), pvk: encodePoint(multiply(H, vk)) }
  return { circuit: 'register', token: TOKEN, account: ACCOUNT, ...keys, witness: { sk, vk } }
}

export function transfer(given: Partial<Secrets> = {}): TransferStatement {
  const secrets = { ...SECRETS, ...given }
  const { amount, rE, sigma } = secrets
  const { payload, witness, ...sender } = spending(secrets)
  const shared = share(rE, PAYEE)
  const blinding = hash(TAG.transferBlinding, shared, sigma)
  const masks = lanes(TAG.auditorRecipient, share(rE, AUDITOR_RECIPIENT), sigma)
  const [hideAmount] = lanes(TAG.auditorSender, share(rE, AUDITOR_SENDER), sigma)
  return {
    circuit: 'transfer',
    ...sender,
    viewingKey: encodePoint(PAYEE),
    auditorRecipient: encodePoint(AUDITOR_RECIPIENT),
    payload: {
      ...payload,
      c_transfer: commit(amount, blinding),
      v_tilde: field(amount + hash(TAG.transferAmount, shared, sigma)),
      v_tilde_aud_r: field(amount + masks[0]),
      r_tilde_aud_r: field(blinding + masks[1]),
      v_tilde_aud_s: field(amount + hideAmount),
    },
    witness: { ...witness, vTransfer: amount },
  }
}

export function withdrawal(given: Partial<Secrets> = {}): WithdrawStatement {
  const secrets = { ...SECRETS, ...given }
  return { circuit: 'withdraw', amount: secrets.amount, ...spending(secrets) }
}

function spending({ sk, v, r, amount, rE, sigma }: Secrets) {
  const vk = hash(TAG.viewingKey, sk, addressToField(TOKEN))
  const rest = (v - amount + FIELD) % FIELD
  const blinding = hash(TAG.spendBlinding, vk, sigma)
  const [, hideBalance, hideBlinding] = lanes(TAG.auditorSender, share(rE, AUDITOR_SENDER), sigma)
  return {
    token: TOKEN,
    spendable: commit(v, r),
    spendingKey: encodePoint(multiply(H, sk)),
    auditorSender: encodePoint(AUDITOR_SENDER),
    payload: {
      c_spend_new: commit(rest, blinding),
      r_e_point: encodePoint(multiply(H, rE)),
      sigma: encodeField(sigma),
      b_tilde: field(rest + hash(TAG.balance, vk, sigma)),
      b_tilde_aud_s: field(rest + hideBalance),
      r_tilde_aud_s: field(blinding + hideBlinding),
    },
    witness: { sk, vk, v, r, rE, sigma },
  }
}
