import { log } from '#lib/observability/log.ts'
import { FROZEN_ERRORS, STALE_PROOF } from '#lib/stellar/confidential-token.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { contractErrorCode, describeLineError, type LineErrorCode } from '#lib/transfers/line-error.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'
import { isConflict } from './balance.ts'
import { diagnose, isRegistered } from './check.ts'
import { isLineError, LineError } from './line-error.ts'
import type { Relay } from './relay.ts'

/** The contract's errors for a payment from an escrow (interface 0.8.0). */
const DELEGATION_ERRORS: Record<number, LineErrorCode> = {
  3501: 'recipient-unregistered',
  3504: 'delegation-revoked',
  3505: 'delegation-ended',
  ...Object.fromEntries(FROZEN_ERRORS.map((number) => [number, 'account-frozen' as const])),
}

/**
 * The reason why no transfer could be made: a problem of the channel, or of the line. Any other error is kept.
 * @param given.to the payee of a payment from the channel's own balance; undefined if it is paid from an escrow
 */
export async function explain(
  relay: Relay,
  { channel, to }: { channel: string; to?: string },
  error: unknown,
): Promise<unknown> {
  // The merge failed, usually because the channel has no XLM for the fee. Other channels may be able to pay.
  const isMergeLost = isLineError(error, 'call-failed')
  if (error instanceof LineError && !isMergeLost) return error
  if (error instanceof LedgerError && error.code === 'unavailable') return error
  const problem = await diagnose(relay, channel)
  if (problem) return new LineError('channel-unfit', `the channel lacks: ${problem}`, { problem })
  if (to !== undefined && !(await isRegistered(relay, to))) return doubtful('recipient-unregistered', error)
  if (to !== undefined && isConflict(error)) return stale('the balance has changed', error)
  if (isMergeLost) return new LineError('balance-short', 'the merge failed', { cause: error })
  if (!(error instanceof WalletError)) return error
  const { code, contractError } = error
  // The balance or escrow changed between reading and simulating, or the node that simulates lags behind.
  if (contractError === STALE_PROOF) return stale('the proof is stale', error)
  const isShort = to !== undefined && code === 'balance-too-low'
  if (isShort) return new LineError('balance-short', 'the channel has too little', { cause: error })
  log('info', 'line cannot be paid', { channel, code, contractError })
  if (contractError === undefined) return doubtful('would-fail', error)
  const ofDelegation = to === undefined ? DELEGATION_ERRORS[contractError] : undefined
  return doubtful(ofDelegation ?? contractErrorCode(contractError), error)
}

const stale = (message: string, cause: unknown) => new LineError('balance-stale', message, { cause })

const doubtful = (code: LineErrorCode, cause: unknown) =>
  new LineError(code, describeLineError(code), { cause, isDoubtful: true })
