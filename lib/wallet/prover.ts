/** Turns a statement into the 14,592 bytes of an UltraHonk proof: lib/prover, or the stand-in of an embedded ledger. */
export interface Prover {
  /** Rejects if the statement is false or the prover is unreachable. The wallet passes the error on. */
  prove(statement: Statement): Promise<Uint8Array>
  /** The verification keys of its circuits, if available. */
  readonly verificationKeys?: VerificationKeys
}

/** A deployment may lack the circuits of delegations. */
export type DelegationCircuit = 'set_spender' | 'spender_transfer'
export type RequiredCircuit = Exclude<Statement['circuit'], DelegationCircuit>

export type VerificationKeys = Readonly<
  Record<RequiredCircuit, Uint8Array> & Partial<Record<DelegationCircuit, Uint8Array>>
>

export const PROOF_BYTES = 14_592

/**
 * The public inputs of one call. Points are 64 bytes (x ‖ y), `payload` holds points and 32-byte fields under the
 * names of interface 0.8.0. `witness` holds the secrets of the statement. The wallet always provides it; a caller that only
 * recomputes public inputs omits it. Never log a witness.
 */
export type Statement =
  | RegisterStatement
  | TransferStatement
  | WithdrawStatement
  | SetSpenderStatement
  | SpenderTransferStatement

export interface RegisterStatement {
  circuit: 'register'
  /** Contract strkey, C… */
  token: string
  /** Strkey of the account that registers. */
  account: string
  y: Uint8Array
  pvk: Uint8Array
  witness?: { sk: bigint; vk: bigint }
}

export interface TransferStatement {
  circuit: 'transfer'
  token: string
  /** Commitment to the sender's balance before the call. */
  spendable: Uint8Array
  spendingKey: Uint8Array
  /** Of the recipient. */
  viewingKey: Uint8Array
  auditorRecipient: Uint8Array
  auditorSender: Uint8Array
  payload: Record<string, Uint8Array>
  witness?: SpendWitness & { vTransfer: bigint }
}

export interface WithdrawStatement {
  circuit: 'withdraw'
  token: string
  spendable: Uint8Array
  spendingKey: Uint8Array
  /** Base units. */
  amount: bigint
  auditorSender: Uint8Array
  payload: Record<string, Uint8Array>
  witness?: SpendWitness
}

export interface SetSpenderStatement {
  circuit: 'set_spender'
  token: string
  spendable: Uint8Array
  spendingKey: Uint8Array
  /** Strkey of the spender. */
  spender: string
  /** The spender's spending key. */
  spenderKey: Uint8Array
  auditorSender: Uint8Array
  payload: Record<string, Uint8Array>
  witness?: SpendWitness & { vA: bigint }
}

export interface SpenderTransferStatement {
  circuit: 'spender_transfer'
  /** Commitment to the allowance before the call, and its salt. */
  allowance: Uint8Array
  allowanceSalt: Uint8Array
  /** The spender's spending key. */
  spenderKey: Uint8Array
  /** Of the recipient. */
  viewingKey: Uint8Array
  auditorRecipient: Uint8Array
  /** Of the allowance's owner. */
  auditorSender: Uint8Array
  payload: Record<string, Uint8Array>
  witness?: SpenderWitness
}

export interface SpenderWitness {
  /** The spender's spending secret. */
  sk: bigint
  /** The delegation's viewing key. */
  dvk: bigint
  /** Opening of `allowance`. */
  vA: bigint
  rA: bigint
  vTransfer: bigint
  /** Ephemeral scalar, r_e_point = rE · H. */
  rE: bigint
}

export interface SpendWitness {
  sk: bigint
  vk: bigint
  /** Opening of `spendable`: balance in base units, and blinding modulo the group order. */
  v: bigint
  r: bigint
  /** Ephemeral scalar, r_e_point = rE · H. */
  rE: bigint
  sigma: bigint
}
