import { setTimeout } from 'node:timers/promises'
import { readAccount } from '#lib/stellar/account.ts'
import { isContested, lookUp, send } from '#lib/stellar/transaction.ts'
import type { SignedCall } from '#lib/wallet/transaction.ts'
import { ItemError } from './item-error.ts'
import type { Relay } from './relay.ts'
import { claimSequence, releaseSequence, sequenceNumberOf } from './sequence.ts'

/** A ledger closes every few seconds: a call gives up on an RPC that shows no new one for this long (ms). */
const STALL_MS = 60_000

/** The network's code for a call that expired before a ledger had room for it. A new call may well succeed. */
const TOO_LATE = 'txTooLate'

/**
 * Submits a call of a channel that pays its own fee (register, merge), and resolves once a ledger includes it. Only for
 * calls that do no harm if applied twice: no transfer is recorded for them.
 * @throws ItemError `channel-unfit`; `call-failed`; `call-expired`; `ledger-stalled`; `relay-closing`. LedgerError
 *   `unavailable`
 */
export async function submitOwnCall(
  relay: Pick<Relay, 'network' | 'signal' | 'database' | 'token'>,
  channel: string,
  call: SignedCall,
): Promise<void> {
  const { network, signal } = relay
  const claim = { address: channel, sequenceNumber: sequenceNumberOf(call.signedXdr, network.passphrase) }
  const db = await relay.database()
  await claimSequence(db, relay.token, { ...claim, isOwnCall: true })
  let sentLedger = -1
  let ledger = -1
  let changedAt = performance.now()
  for (;;) {
    const found = await lookUp(network, call.hash)
    if (found.latestLedger !== ledger) changedAt = performance.now()
    ledger = found.latestLedger
    if (found.status === 'SUCCESS') return
    if (found.status !== 'NOT_FOUND') throw new ItemError('call-failed', 'the call failed on the ledger')
    if (found.latestLedgerCloseTime > call.maxTime) {
      const { account, latestLedger } = await readAccount(network.server, channel)
      // Another call with this number may have been applied, from another host or an earlier attempt.
      const isFree = latestLedger >= found.latestLedger && account && account.seqNum < claim.sequenceNumber
      if (isFree) await releaseSequence(db, relay.token, claim)
      throw new ItemError('call-expired', 'the call expired')
    }
    if (sentLedger < found.latestLedger) sentLedger = await resubmit(relay, call, found.latestLedger)
    if (signal.aborted) throw new ItemError('relay-closing', 'the relay is closing')
    if (performance.now() - changedAt > STALL_MS) {
      throw new ItemError('ledger-stalled', 'the RPC shows no new ledger')
    }
    await setTimeout(network.pollMs)
  }
}

async function resubmit({ network }: Pick<Relay, 'network'>, call: SignedCall, ledger: number): Promise<number> {
  const sent = await send(network, call.signedXdr)
  if (sent.kind === 'error' && sent.resultCode === TOO_LATE) throw new ItemError('call-expired', 'the call expired')
  if (sent.kind === 'error' && !isContested(sent.resultCode)) {
    throw new ItemError('call-failed', `the network refused the call: ${sent.resultCode}`)
  }
  return sent.latestLedger ?? ledger
}
