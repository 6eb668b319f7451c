import { add, encodeField, encodePoint, FIELD, G, H, multiply, type Point } from '#lib/wallet/grumpkin.ts'
import { addressToField } from '#lib/wallet/keys.ts'
import { hash, lanes, TAG } from '#lib/wallet/poseidon.ts'
import type {
  RegisterStatement,
  SetSpenderStatement,
  SpenderTransferStatement,
  TransferStatement,
  WithdrawStatement,
} from '#lib/wallet/prover.ts'

export const TOKEN = 'CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC'
export const ACCOUNT = 'GAAZI4TCR3TY5OJHCTJC2A4QSY6CJWJH5IAJTGKIN2ER7LBNVKOCCWN7'

/** The secrets of a payment. Values that a test omits default to those below. */
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

/** Values may be any field element here, even those that no wallet accepts. */
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

const SPENDER_SECRET = 4_321n
const SPENDER_KEY = multiply(H, SPENDER_SECRET)

/** The secrets of a payment into or from an allowance. */
interface DelegationSecrets extends Secrets {
  /** Salt of the allowance. */
  sigmaA: bigint
}

export function delegation(given: Partial<DelegationSecrets> = {}): SetSpenderStatement {
  const secrets = { ...SECRETS, sigmaA: 31n, ...given }
  const { sk, amount, rE, sigma, sigmaA } = secrets
  const { payload, witness, ...owner } = spending(secrets)
  const op = addressToField(ACCOUNT)
  const dvk = hash(TAG.delegationKey, hash(TAG.viewingKey, sk, addressToField(TOKEN)), op)
  const blinding = hash(TAG.allowanceBlinding, dvk, sigmaA)
  const auditorSecret = share(rE, AUDITOR_SENDER)
  const [hideAmount] = lanes(TAG.auditorSender, auditorSecret, sigma)
  const escrow = field(dvk + hash(TAG.delegationEscrow, share(rE, SPENDER_KEY), op))
  return {
    circuit: 'set_spender',
    ...owner,
    spender: ACCOUNT,
    spenderKey: encodePoint(SPENDER_KEY),
    payload: {
      ...payload,
      c_a: commit(amount, blinding),
      a_tilde: field(amount + hash(TAG.allowance, dvk, sigmaA)),
      sigma_a: encodeField(sigmaA),
      escrowed_dvk: Buffer.concat([(payload.r_e_point ?? new Uint8Array(64)).subarray(0, 32), escrow]),
      v_tilde_aud_s: field(amount + hideAmount),
      r_a_tilde_aud_s: field(blinding + hash(TAG.allowanceEscrow, auditorSecret, op)),
    },
    witness: { ...witness, vA: amount },
  }
}

/** `sigma` is the new salt of the allowance and `sigmaA` the previous one. `v` is the allowance before the payment. */
export function delegatedTransfer(
  given: Partial<DelegationSecrets & { blinding: bigint }> = {},
): SpenderTransferStatement {
  const { v, amount, rE, sigma, sigmaA, ...other } = { ...SECRETS, sigmaA: 31n, ...given }
  const dvk = 8_888n
  const blinding = other.blinding ?? hash(TAG.allowanceBlinding, dvk, sigmaA)
  const rest = (v - amount + FIELD) % FIELD
  const newBlinding = hash(TAG.allowanceBlinding, dvk, sigma)
  const shared = share(rE, PAYEE)
  const received = hash(TAG.transferBlinding, shared, sigma)
  const [hideAmount, hideReceived] = lanes(TAG.auditorRecipient, share(rE, AUDITOR_RECIPIENT), sigma)
  const [hideSpent, hideRest, hideBlinding] = lanes(TAG.auditorSender, share(rE, AUDITOR_SENDER), sigma)
  return {
    circuit: 'spender_transfer',
    allowance: commit(v, blinding),
    allowanceSalt: encodeField(sigmaA),
    spenderKey: encodePoint(SPENDER_KEY),
    viewingKey: encodePoint(PAYEE),
    auditorRecipient: encodePoint(AUDITOR_RECIPIENT),
    auditorSender: encodePoint(AUDITOR_SENDER),
    payload: {
      c_a_new: commit(rest, newBlinding),
      c_transfer: commit(amount, received),
      r_e_point: encodePoint(multiply(H, rE)),
      v_tilde: field(amount + hash(TAG.transferAmount, shared, sigma)),
      a_tilde_new: field(rest + hash(TAG.allowance, dvk, sigma)),
      sigma_a_new: encodeField(sigma),
      v_tilde_aud_r: field(amount + hideAmount),
      r_tilde_aud_r: field(received + hideReceived),
      v_tilde_aud_s: field(amount + hideSpent),
      a_tilde_aud_s: field(rest + hideRest),
      r_tilde_aud_s: field(newBlinding + hideBlinding),
    },
    witness: { sk: SPENDER_SECRET, dvk, vA: v, rA: blinding, vTransfer: amount, rE },
  }
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
