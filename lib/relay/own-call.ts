import { recordUnsponsored } from '#lib/transfers/record.ts'
import type { SignedCall } from '#lib/wallet/transaction.ts'
import { LineError } from './line-error.ts'
import type { Relay } from './relay.ts'
import { requireKnownNumber, sequenceNumberOf } from './sequence.ts'

/** A call that a channel has signed, and whose fee it pays itself. */
interface OwnCall {
  kind: 'register' | 'merge'
  signed: SignedCall
  /** a ledger that closed before the call was built: no earlier one can include it */
  ledger: number
}

type Context = Pick<Relay, 'database' | 'network' | 'token' | 'signal'> & { sponsor: Pick<Relay['sponsor'], 'tracker'> }

/** How long a call waits (ms) before it checks whether the relay is closing, and how long without a new ledger. */
const WAIT_MS = 2_000
const STALL_MS = 60_000

/**
 * Submits a call of a channel, and resolves once a ledger includes it. The call is a transfer without a sponsor: it is recorded
 * before it is sent, and any process finds out how it ends.
 * @throws LineError `channel-moved`; `call-failed`; `call-expired`; `ledger-stalled`; `relay-closing`
 */
export async function submitOwnCall(context: Context, channel: string, call: OwnCall): Promise<void> {
  const { tracker } = context.sponsor
  const recorded = await record(context, channel, call)
  const { id } = recorded.transfer
  const [envelope] = recorded.envelopes
  let outcome = await tracker.submit(recorded, { innerHash: call.signed.hash, isNew: true, waitMs: WAIT_MS })
  let ledger = tracker.view.latestLedger()
  let changedAt = performance.now()
  while (outcome.kind !== 'settled') {
    const latest = tracker.view.latestLedger()
    if (latest !== ledger) changedAt = performance.now()
    ledger = latest
    // It may still be applied: until it has expired, the channel signs nothing else.
    if (outcome.kind === 'refused') throw failed(`the network refused the call: ${outcome.resultCode}`)
    if (outcome.kind === 'gone') throw new LineError('channel-moved', 'the database has lost the call')
    if (context.signal.aborted) throw new LineError('relay-closing', 'the relay is closing')
    if (performance.now() - changedAt > STALL_MS) throw new LineError('ledger-stalled', 'the RPC shows no new ledger')
    const [next = outcome] = await tracker.track([id], { waitMs: WAIT_MS, envelope })
    outcome = next
  }
  const { status, resultCode } = outcome.transfer
  if (status === 'expired') throw new LineError('call-expired', 'the call expired')
  if (status !== 'succeeded') throw failed(`the call ended as ${status}${resultCode === null ? '' : `: ${resultCode}`}`)
}

const failed = (problem: string) => new LineError('call-failed', problem)

async function record({ network, token, database }: Context, account: string, { kind, signed, ledger }: OwnCall) {
  const number = sequenceNumberOf(signed.signedXdr, network.passphrase)
  const transfer = { kind, account, sequenceNumber: number, recipient: account, recordedLedger: ledger }
  const recorded = await recordUnsponsored(await database(), transfer, signed, async (tx) => {
    await requireKnownNumber(tx, token, { address: account, number, isLine: false })
    return true
  })
  if (recorded) return recorded
  throw failed('another transfer of the channel is open')
}
