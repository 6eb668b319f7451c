import { log } from '#lib/observability/log.ts'
import { FROZEN_ERRORS, STALE_PROOF } from '#lib/stellar/confidential-token.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'
import { isConflict } from './balance.ts'
import { diagnose, isRegistered } from './check.ts'
import { isLineError, LINE_FAILURES, LineError, type RunErrorCode } from './line-error.ts'
import type { Relay } from './relay.ts'

/** The reason why no transfer could be made: a problem of the channel, or of the item. Any other error is kept. */
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
  if (!(await isRegistered(relay, to))) return new LineError('unpayable', LINE_FAILURES.recipientUnregistered)
  if (isConflict(error)) return new LineError('balance-stale', 'the balance has changed', { cause: error })
  if (isMergeLost) return new LineError('balance-short', 'the merge failed', { cause: error })
  if (!(error instanceof WalletError)) return error
  const { code, contractError } = error
  // The balance of the channel changed between reading and simulating, or the node that simulates lags behind.
  if (contractError === STALE_PROOF) return new LineError('balance-stale', 'the proof is stale', { cause: error })
  if (code === 'balance-too-low') return new LineError('balance-short', 'the channel has too little', { cause: error })
  log('info', 'item cannot be paid', { channel, code, contractError })
  return new LineError('unpayable', `the transfer would fail: contract error ${contractError ?? code}`)
}

/** The contract's errors for a payment from an escrow (interface 0.8.0). */
const DELEGATION_ERRORS: Record<number, RunErrorCode> = {
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
  log('info', 'item cannot be paid', { channel, code, contractError })
  const reason = contractError === undefined ? undefined : DELEGATION_ERRORS[contractError]
  if (reason) return new LineError(reason, error.message, { cause: error, isDoubtful: true })
  return new LineError('unpayable', `the transfer would fail: contract error ${contractError ?? code}`)
}
