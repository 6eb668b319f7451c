import { type Keypair, scValToNative, xdr } from '@stellar/stellar-sdk'
import { standIn } from '#lib/prover/stand-in.ts'
import { encodeCallData } from '#lib/wallet/call-data.ts'
import { encodePoint, H, multiply } from '#lib/wallet/grumpkin.ts'
import {
  amount,
  apply,
  auditorKey,
  field,
  g,
  type Network,
  number,
  point,
  type Request,
  record,
} from './host-fixture.ts'

export type Payload = Record<string, Uint8Array>

export const keysOf = (seed: bigint): { y: Uint8Array; pvk: Uint8Array } => ({
  y: encodePoint(multiply(H, seed)),
  pvk: encodePoint(multiply(H, seed + 1n)),
})

export const bytes = (value: Uint8Array): xdr.ScVal => xdr.ScVal.scvBytes(value)

export function registerRequest(network: Network, account: Keypair, seed: bigint): Request {
  const keys = keysOf(seed)
  const proof = standIn({ circuit: 'register', token: network.contracts.token, account: account.publicKey(), ...keys })
  return {
    source: account,
    contract: network.contracts.token,
    name: 'register',
    args: [g(account), number(0), bytes(encodeCallData({ ...keys }, proof))],
  }
}

/** The confidential account as a client sees it. */
export function confidentialBalance(
  network: Network,
  account: Keypair,
): Record<string, Uint8Array> & { auditor_id: unknown } {
  const result = record(network, {
    source: account,
    contract: network.contracts.token,
    name: 'confidential_balance',
    args: [g(account)],
  })
  if (!result.ok) throw new Error(result.error)
  return scValToNative(result.returnValue)
}

export function depositRequest(network: Network, from: Keypair, to: Keypair, value: bigint): Request {
  const args = [g(from), g(to), amount(value)]
  return { source: from, contract: network.contracts.token, name: 'deposit', args }
}

export function mergeRequest(network: Network, account: Keypair): Request {
  return { source: account, contract: network.contracts.token, name: 'merge', args: [g(account)] }
}

export function transferPayload(): Payload {
  return {
    b_tilde: field(1),
    b_tilde_aud_s: field(2),
    c_spend_new: point(600n),
    c_transfer: point(400n),
    r_e_point: point(9n),
    r_tilde_aud_r: field(3),
    r_tilde_aud_s: field(4),
    sigma: field(5),
    v_tilde: field(6),
    v_tilde_aud_r: field(7),
    v_tilde_aud_s: field(8),
  }
}

export function withdrawPayload(): Payload {
  return {
    b_tilde: field(1),
    b_tilde_aud_s: field(2),
    c_spend_new: point(750n),
    r_e_point: point(9n),
    r_tilde_aud_s: field(4),
    sigma: field(5),
  }
}

/** The proof for the current state of the ledger. `payload` by the names of 0.8.0. */
export function proveTransfer(network: Network, from: Keypair, to: Keypair, payload: Payload): Uint8Array {
  const sender = confidentialBalance(network, from)
  const recipient = confidentialBalance(network, to)
  return standIn({
    circuit: 'transfer',
    token: network.contracts.token,
    spendable: present(sender.spendable_commitment),
    spendingKey: present(sender.spending_public_key),
    viewingKey: present(recipient.viewing_public_key),
    auditorRecipient: auditorKey,
    auditorSender: auditorKey,
    payload,
  })
}

export function transferRequest(
  network: Network,
  {
    from,
    to,
    payload = transferPayload(),
    proof,
  }: { from: Keypair; to: Keypair; payload?: Payload; proof?: Uint8Array },
): Request {
  const data = encodeCallData(payload, proof ?? proveTransfer(network, from, to, payload))
  return {
    source: from,
    contract: network.contracts.token,
    name: 'confidential_transfer',
    args: [g(from), g(to), bytes(data)],
  }
}

export function withdrawRequest(
  network: Network,
  { from, to, value, payload = withdrawPayload() }: { from: Keypair; to: Keypair; value: bigint; payload?: Payload },
): Request {
  const sender = confidentialBalance(network, from)
  const proof = standIn({
    circuit: 'withdraw',
    token: network.contracts.token,
    spendable: present(sender.spendable_commitment),
    spendingKey: present(sender.spending_public_key),
    amount: value < 0n ? 0n : value,
    auditorSender: auditorKey,
    payload,
  })
  return {
    source: from,
    contract: network.contracts.token,
    name: 'withdraw',
    args: [g(from), g(to), amount(value), bytes(encodeCallData(payload, proof))],
  }
}

export function delegationPayload(): Payload {
  return {
    a_tilde: field(11),
    b_tilde: field(1),
    b_tilde_aud_s: field(2),
    c_a: point(500n),
    c_spend_new: point(500n),
    escrowed_dvk: new Uint8Array(64).fill(12),
    r_a_tilde_aud_s: field(13),
    r_e_point: point(9n),
    r_tilde_aud_s: field(4),
    sigma: field(5),
    sigma_a: field(14),
    v_tilde_aud_s: field(8),
  }
}

export function setSpenderRequest(
  network: Network,
  {
    owner,
    spender,
    liveUntil = 2_000,
    payload = delegationPayload(),
  }: { owner: Keypair; spender: Keypair; liveUntil?: number; payload?: Payload },
): Request {
  const account = confidentialBalance(network, owner)
  const proof = standIn({
    circuit: 'set_spender',
    token: network.contracts.token,
    spendable: present(account.spendable_commitment),
    spendingKey: present(account.spending_public_key),
    spender: spender.publicKey(),
    spenderKey: present(confidentialBalance(network, spender).spending_public_key),
    auditorSender: auditorKey,
    payload,
  })
  return {
    source: owner,
    contract: network.contracts.token,
    name: 'set_spender',
    args: [g(owner), g(spender), number(liveUntil), bytes(encodeCallData(payload, proof))],
  }
}

export function spenderTransferPayload(): Payload {
  return {
    a_tilde_aud_s: field(21),
    a_tilde_new: field(22),
    c_a_new: point(300n),
    c_transfer: point(200n),
    r_e_point: point(9n),
    r_tilde_aud_r: field(23),
    r_tilde_aud_s: field(24),
    sigma_a_new: field(25),
    v_tilde: field(26),
    v_tilde_aud_r: field(27),
    v_tilde_aud_s: field(28),
  }
}

export function spenderTransferRequest(
  network: Network,
  {
    owner,
    spender,
    to,
    payload = spenderTransferPayload(),
  }: { owner: Keypair; spender: Keypair; to: Keypair; payload?: Payload },
): Request {
  const delegation = delegationOf(network, owner, spender)
  const proof = standIn({
    circuit: 'spender_transfer',
    allowance: present(delegation.allowance_commitment),
    allowanceSalt: present(delegation.allowance_salt),
    spenderKey: present(confidentialBalance(network, spender).spending_public_key),
    viewingKey: present(confidentialBalance(network, to).viewing_public_key),
    auditorRecipient: auditorKey,
    auditorSender: auditorKey,
    payload,
  })
  return {
    source: spender,
    contract: network.contracts.token,
    name: 'confidential_transfer_from',
    args: [g(spender), g(owner), g(to), bytes(encodeCallData(payload, proof))],
  }
}

export function revokeRequest(network: Network, owner: Keypair, spender: Keypair): Request {
  return { source: owner, contract: network.contracts.token, name: 'revoke_spender', args: [g(owner), g(spender)] }
}

/** The delegation as a client sees it. */
export function delegationOf(network: Network, owner: Keypair, spender: Keypair): Record<string, Uint8Array> {
  const args = [g(owner), g(spender)]
  const request = { source: owner, contract: network.contracts.token, name: 'get_spender_delegation', args }
  const result = record(network, request)
  if (!result.ok) throw new Error(result.error)
  return scValToNative(result.returnValue)
}

/** Both registered; the first has 1,000 base units to spend. */
export function fund(network: Network, from: Keypair, to: Keypair): void {
  apply(network, registerRequest(network, from, 11n))
  apply(network, registerRequest(network, to, 21n))
  apply(network, depositRequest(network, from, from, 1_000n))
  apply(network, mergeRequest(network, from))
}

function present(value: Uint8Array | undefined): Uint8Array {
  if (!value) throw new Error('the entry lacks a field')
  return value
}
