import type { xdr } from '@stellar/stellar-sdk'
import type { LedgerContext } from '../../state/ledger-context.ts'
import type { State } from '../../state/state.ts'

/** The context in which a classic operation runs. */
export interface OperationContext {
  /** the operation's own layer: dropped unless it succeeds */
  readonly state: State
  readonly ledger: LedgerContext
  /** strkey of the operation's source; its account exists */
  readonly source: string
  readonly account: xdr.AccountEntry
  readonly memo: xdr.Memo
}

/** The result of a classic operation, in that operation's own union. */
export interface Applied<Result> {
  readonly result: Result
  readonly events?: xdr.ContractEvent[]
}
