import { log } from '#lib/observability/log.ts'
import { FROZEN_ERRORS, STALE_PROOF } from '#lib/stellar/confidential-token.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { contractErrorCode, describeLineError, type LineErrorCode } from '#lib/transfers/line-error.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'
import { isConflict } from './balance.ts'
import { diagnose, isRegistered } from './check.ts'
import { isLineError, LineError } from './line-error.ts'
import type { Relay } from './relay.ts'

/** The reason why no transfer could be made: a problem of the channel, or of the line. Any other error is kept. */
export async function explain(
  relay: Relay,
  { channel, to }: { channel: string; to: string },
  error: unknown,
): Promise<unknown> {
  // The merge failed, usually because the channel has no XLM for the fee. Other channels may be able to pay.
  const isMergeLost = isLineError(error, 'call-failed')
  if (error instanceof LineError && !isMergeLost) return error
  if (error instanceof LedgerError && error.code === 'unavailable') return error
  const problem = await diagnose(relay, channel)
  if (problem) return new LineError('channel-unfit', `the channel lacks: ${problem}`, { problem })
  if (!(await isRegistered(relay, to))) return doubtful('recipient-unregistered', error)
  if (isConflict(error)) return new LineError('balance-stale', 'the balance has changed', { cause: error })
  if (isMergeLost) return new LineError('balance-short', 'the merge failed', { cause: error })
  if (!(error instanceof WalletError)) return error
  const { code, contractError } = error
  // The balance of the channel changed between reading and simulating, or the node that simulates lags behind.
  if (contractError === STALE_PROOF) return new LineError('balance-stale', 'the proof is stale', { cause: error })
  if (code === 'balance-too-low') return new LineError('balance-short', 'the channel has too little', { cause: error })
  log('info', 'line cannot be paid', { channel, code, contractError })
  return wouldFail(error)
}

const doubtful = (code: LineErrorCode, cause: unknown) =>
  new LineError(code, describeLineError(code), { cause, isDoubtful: true })

const wouldFail = (error: WalletError) =>
  doubtful(error.contractError === undefined ? 'would-fail' : contractErrorCode(error.contractError), error)

/** The contract's errors for a payment from an escrow (interface 0.8.0). */
const DELEGATION_ERRORS: Record<number, LineErrorCode> = {
  3501: 'recipient-unregistered',
  3504: 'delegation-revoked',
  3505: 'delegation-ended',
  ...Object.fromEntries(FROZEN_ERRORS.map((number) => [number, 'account-frozen' as const])),
}

/** The reason why no payment from an escrow could be made. Any other error is kept. */
export async function explainRun(relay: Relay, channel: string, error: unknown): Promise<unknown> {
  if (error instanceof LineError || (error instanceof LedgerError && error.code === 'unavailable')) return error
  const problem = await diagnose(relay, channel)
  if (problem) return new LineError('channel-unfit', `the channel lacks: ${problem}`, { problem })
  if (!(error instanceof WalletError)) return error
  const { code, contractError } = error
  // The escrow changed between reading and simulating, or the node that simulates lags behind.
  if (contractError === STALE_PROOF) return new LineError('balance-stale', 'the proof is stale', { cause: error })
  log('info', 'line cannot be paid', { channel, code, contractError })
  const reason = contractError === undefined ? undefined : DELEGATION_ERRORS[contractError]
  return reason ? doubtful(reason, error) : wouldFail(error)
}
