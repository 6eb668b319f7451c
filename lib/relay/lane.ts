import { type Lease, releaseLease, renewLease, takeLease } from '#lib/db/leases.ts'
import { Refusal } from '#lib/http/refusal.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { readBalance } from './balance.ts'
import { findChannel, noteProblem } from './channel-record.ts'
import { diagnose } from './diagnosis.ts'
import { findBegun, takeItem } from './items.ts'
import { advanceItem, type Outcome } from './payment.ts'
import type { Channel, Relay } from './relay.ts'

/** Why a lane has ended: nothing to do, the channel is for another relay, it was told to, or the channel needs a rest. */
export type LaneEnd = 'idle' | 'held' | 'stopped' | 'unfit'

/** After so many waits on end a relay lets another one try: that may see the ledger, or have a prover, where it has not. */
const WAITS = 10

/**
 * Pays items through one channel, strictly one after the other, for each starts from the balance that the last one left.
 * First of all what the channel had begun, be it under another relay that is gone. The channel's lease keeps two relays
 * from spoiling each other's proofs; that no item is paid twice does not rest on it.
 * @param options.refreshes reads the channel's events first
 */
export async function runLane(
  relay: Relay,
  channel: Channel,
  { goesOn, refreshes }: { goesOn: () => boolean; refreshes: boolean },
): Promise<LaneEnd> {
  const { address } = channel
  const terms = { holder: relay.name, seconds: relay.times.lease }
  const lease = await takeLease(await relay.database(), address, terms)
  if (!lease) return 'held'
  const hold = keepLease(relay, lease)
  try {
    if (!(await isFit(relay, channel))) return 'unfit'
    if (refreshes && !(await refresh(relay, channel))) return 'unfit'
    for (let waits = 0; goesOn() && hold.isHeld() && waits < WAITS; ) {
      const outcome = await step(relay, channel)
      if (outcome === 'idle' || outcome === 'unfit') return outcome
      waits = outcome === 'wait' ? waits + 1 : 0
      if (outcome === 'wait') await pause(relay, () => goesOn() && hold.isHeld())
    }
    return goesOn() ? 'held' : 'stopped'
  } finally {
    await hold.end()
  }
}

async function step(relay: Relay, channel: Channel): Promise<Outcome | 'idle'> {
  const db = await relay.database()
  const item = (await findBegun(db, channel.address)) ?? (await takeItem(db, channel.address))
  return item ? await advanceItem(relay, channel, item) : 'idle'
}

/** Asks the ledger whether the channel may pay at all, and notes the answer. */
async function isFit(relay: Relay, channel: Channel): Promise<boolean> {
  const { address } = channel
  const db = await relay.database()
  const [problem, known] = await Promise.all([diagnose(relay, address), findChannel(db, relay.token, address)])
  if (problem) await noteProblem(db, relay.token, address, problem)
  else if (known?.problem === 'history') return await refresh(relay, channel)
  // Whether it has enough only a payment shows.
  else if (known?.problem && known.problem !== 'balance') await noteProblem(db, relay.token, address, null)
  return problem === undefined
}

/** Reads what has happened to the channel, while the RPC still has it. Whether that joins on to what is known. */
async function refresh(relay: Relay, channel: Channel): Promise<boolean> {
  const lost = await readBalance(relay, channel).then(
    () => false,
    (error: unknown) => {
      if (error instanceof Refusal && error.code === 'conflict') return true
      throw error
    },
  )
  const db = await relay.database()
  const known = await findChannel(db, relay.token, channel.address)
  // What opens the spendable balance may be known all the same, and until that changes the channel can pay.
  if (lost && !known?.sealedOpening) await noteProblem(db, relay.token, channel.address, 'history')
  else if (known?.problem === 'history') await noteProblem(db, relay.token, channel.address, null)
  return !lost || known?.sealedOpening != null
}

/** Renews a lease until it is ended or lost. */
function keepLease(relay: Relay, lease: Lease): { isHeld(): boolean; end(): Promise<void> } {
  const { lease: seconds } = relay.times
  let heldUntil = Date.now() + seconds * 1000
  const renew = async () => {
    const asked = Date.now()
    try {
      heldUntil = (await renewLease(await relay.database(), lease, seconds)) ? asked + seconds * 1000 : 0
    } catch (error) {
      log('info', 'lease not renewed', { channel: lease.account, failure: describeFailure(error) })
    }
  }
  const timer = setInterval(() => void renew(), (seconds * 1000) / 3)
  timer.unref()
  return {
    isHeld: () => Date.now() < heldUntil,
    end: async () => {
      clearInterval(timer)
      await relay
        .database()
        .then((db) => releaseLease(db, lease))
        .catch((error: unknown) => log('info', 'lease not released', { failure: describeFailure(error) }))
    },
  }
}

async function pause({ times }: Relay, goesOn: () => boolean): Promise<void> {
  const until = Date.now() + times.tick * 1000
  while (Date.now() < until && goesOn()) await new Promise((resolve) => setTimeout(resolve, 50))
}
