import { Refusal } from '#lib/refusal/refusal.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import type { Network } from '#lib/stellar/network.ts'
import { lookUp, send } from '#lib/stellar/transaction.ts'
import type { SignedCall } from '#lib/wallet/transaction.ts'

/** A ledger closes every few seconds: an RPC that shows no new one for this long (ms) is given up. */
const STANDSTILL_MS = 60_000

/** The network's code for a call that expired before a ledger had room for it. A new call may well succeed. */
const TOO_LATE = 'txTooLate'

/**
 * Sends a call that pays its own fee (register, merge) until it stands on the ledger, and resolves then. Only for calls
 * that do no harm when they happen twice, because nothing is recorded.
 * @throws Refusal `failed` when the network refused it, or it failed; LedgerError `unavailable` when it expired, when the
 *   RPC shows no new ledger, and when `signal` is aborted
 */
export async function submitOwnCall(network: Network, call: SignedCall, signal: AbortSignal): Promise<void> {
  let sentAt = -1
  let ledger = -1
  let movedAt = performance.now()
  for (;;) {
    const found = await lookUp(network, call.hash)
    if (found.latestLedger !== ledger) movedAt = performance.now()
    ledger = found.latestLedger
    if (found.status === 'NOT_FOUND') {
      if (found.latestLedgerCloseTime > call.maxTime) throw new LedgerError('unavailable', 'the call expired')
      if (sentAt < found.latestLedger) sentAt = await resubmit(network, call, found.latestLedger)
    } else if (found.status === 'SUCCESS') return
    else throw new Refusal('failed', 'the call failed on the ledger')
    if (signal.aborted) throw new LedgerError('unavailable', 'the relay is closing')
    if (performance.now() - movedAt > STANDSTILL_MS) throw new LedgerError('unavailable', 'the ledger stands still')
    await new Promise((resolve) => setTimeout(resolve, network.pollMs))
  }
}

async function resubmit(network: Network, call: SignedCall, ledger: number): Promise<number> {
  const sent = await send(network, call.signedXdr)
  if (sent.kind === 'error' && sent.resultCode === TOO_LATE) throw new LedgerError('unavailable', 'the call expired')
  if (sent.kind === 'error' && !sent.contested) {
    throw new Refusal('failed', `the network refused the call: ${sent.resultCode}`)
  }
  return sent.latestLedger ?? ledger
}
