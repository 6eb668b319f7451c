import { and, eq, inArray, isNotNull, isNull, lte, not, or, sql } from 'drizzle-orm'
import { relayChannels, relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { HAS_LIVE_TRANSFER, IS_OPEN_LINE, isLine, type Line, lockLine } from '#lib/transfers/line.ts'
import { lockPayments, paymentsGoOn } from '#lib/transfers/stop.ts'
import { isChannel, PAYS_RUNS } from './channel-state.ts'
import { LineError } from './line-error.ts'
import type { Channel, Relay, RelayStore } from './relay.ts'
import { requireKnownNumber } from './sequence.ts'

/** A line whose payment a host prepares, through this channel. */
export type LeasedLine = Line & { channel: string }

/** The users of jobs share the relay's test funds, and take one turn together. */
const TEST_FUNDS = ''

/** Whose turn a line takes on its channel: the owner of an escrow, or all users of test funds together. */
export const ownerOf = ({ spender, quotaAccount }: Pick<Line, 'spender' | 'quotaAccount'>): string =>
  spender === null ? TEST_FUNDS : quotaAccount

const CLOCK = sql`clock_timestamp()`

/** What a host holds a channel with: its own open transfer there, and whose turn that was. */
export interface Hold {
  transfer: string
  owner: string
}

/**
 * Leases the next line for a channel, in one SQL statement that reads one line of each waiting owner, however many lines there
 * are: the owner that has waited longest for a payment of the channel comes first, and the owner of its open transfer last.
 * Undefined if no line waits, or if the channel may pay none: another host leases a line for it, or has a transfer open.
 * @param given.held this host's open transfer of the channel: the next payment may be proved while that is open
 * @param given.canRun whether this host can prove payments from a delegation
 */
export async function leaseLine(
  relay: Relay,
  { address }: Channel,
  { held, canRun }: { held: Hold | undefined; canRun: boolean },
): Promise<LeasedLine | undefined> {
  const db = await relay.database()
  const { token, relayKey } = relay
  // The first line of an owner that is due, that no host prepares or has paid, and that no other channel is leasing just now.
  const first = sql`line.outcome is null and line.due <= ${CLOCK}
    and (line.leased_until is null or line.leased_until <= ${CLOCK})
    and exists (select from ${relayJobs} as job where job.id = line.job and job.relay_key = ${relayKey})
    and not exists (select from ${transfers} as transfer where transfer.line_job = line.job
      and transfer.line_position = line.position and transfer.status in ('open', 'succeeded', 'unknown'))
    order by line.due, line.job, line.position limit 1 for no key update of line skip locked`
  const ofRuns = sql`select line.quota_account from ${relayLines} as line
    where line.spender = ${address} and line.outcome is null`
  const chosen = sql`(with recursive channel as (
      select ${relayChannels.problem} is null as pays_jobs from ${relayChannels}
      where ${isChannel(token, address)} and not ${relayChannels.paused} and not ${relayChannels.retired} and ${PAYS_RUNS}
        and ${paymentsGoOn(token)}
        and not exists (select from ${transfers} as transfer where transfer.account = ${address}
          and transfer.status = 'open' and transfer.id is distinct from ${held?.transfer ?? null}::uuid)
        and not exists (select from ${relayLines} as other where other.channel = ${address}
          and other.leased_until > ${CLOCK})
    ), owner(name) as (
      (${ofRuns} order by line.quota_account limit 1)
      union all
      select (${ofRuns} and line.quota_account > owner.name order by line.quota_account limit 1)
        from owner where owner.name is not null
    ), turn as (
      select owner.name as owner, next.*, (select max(ended.settled_at) from ${relayLines} as ended
          where ended.spender = ${address} and ended.quota_account = owner.name) as last
        from owner cross join lateral (select line.job, line.position, line.due from ${relayLines} as line
          where ${canRun} and line.spender = ${address} and line.quota_account = owner.name and ${first}) as next
      union all
      select ${TEST_FUNDS} as owner, next.*, (select max(ended.settled_at) from ${relayLines} as ended
          where ended.channel = ${address} and ended.spender is null) as last
        from (select line.job, line.position, line.due from ${relayLines} as line
          where line.spender is null and not (${address} = any(line.unable)) and ${first}) as next
    ) select turn.job, turn.position from turn, channel where turn.owner <> ${TEST_FUNDS} or channel.pays_jobs
      order by turn.owner = ${held?.owner ?? null}, turn.last nulls first, turn.due, turn.owner limit 1)`
  const isChosen = sql`(${relayLines.job}, ${relayLines.position}) = ${chosen}`
  const isFree = or(isNull(relayLines.leasedUntil), lte(relayLines.leasedUntil, CLOCK))
  const leased = { channel: address, leasedUntil: after(relay.times.lease) }
  const isIt = and(isChosen, IS_OPEN_LINE, isFree)
  const [line] = await db.update(relayLines).set(leased).where(isIt).returning()
  return line && { ...line, channel: address }
}

const after = (seconds: number) => sql`${CLOCK} + make_interval(secs => ${seconds})`

const isLeasedBy = (line: LeasedLine) =>
  and(isLine(line), eq(relayLines.channel, line.channel), isNotNull(relayLines.leasedUntil))

/** Prolongs a lease, until the function that it returns is called, or `times.longestLease` is over. */
export function keepLease(relay: Relay, line: LeasedLine): () => void {
  const end = performance.now() + relay.times.longestLease * 1000
  const renew = async () => {
    if (relay.signal.aborted || performance.now() > end) return clearInterval(timer)
    const renewed = { leasedUntil: after(relay.times.lease) }
    await (await relay.database()).update(relayLines).set(renewed).where(isLeasedBy(line))
  }
  // A renewal that fails costs the courtesy, and nothing else.
  const timer = setInterval(() => void renew().catch(() => undefined), (relay.times.lease * 1000) / 3)
  timer.unref()
  return () => clearInterval(timer)
}

/** Why a host leaves a line, and what the next one needs to know. */
export type Leaving =
  /** nothing is known against it */
  | { because: 'left' }
  /** the channel has too little for it */
  | { because: 'balance-short' }
  /** it is tried again after a pause (s) */
  | { because: 'busy'; seconds: number }
  /** a response ruled it out: every channel tries it again after a pause (s), once no node can lag behind this ledger */
  | { because: 'doubted'; ledger: number; seconds: number }

/** Ends a lease, so that another channel or host may take the line. */
export async function leaveLine({ database }: RelayStore, line: LeasedLine, leaving: Leaving): Promise<void> {
  const columns = {
    leasedUntil: null,
    ...('seconds' in leaving && { due: after(leaving.seconds) }),
    ...(leaving.because === 'doubted' && { unable: [], doubtedLedger: leaving.ledger }),
    ...(leaving.because === 'balance-short' && { unable: sql`array_append(${relayLines.unable}, ${line.channel})` }),
  }
  await (await database()).update(relayLines).set(columns).where(isLeasedBy(line))
}

/**
 * Locks a line in the SQL transaction that records its transfer, and requires that nothing else may pay it.
 * @param number the sequence number of the transfer
 * @throws LineError `payments-stopped`, `line-gone`, `channel-moved`, `channel-paused`, `not-adopted`
 */
export async function claimLine(tx: Database, { token }: RelayStore, line: LeasedLine, number: bigint): Promise<void> {
  if (!(await lockPayments(tx, token))) throw new LineError('payments-stopped', 'payments are stopped')
  const open = await lockLine(tx, line)
  if (!open) throw new LineError('line-gone', 'the line has ended, or another transfer pays it')
  await requireKnownNumber(tx, token, { address: line.channel, number, isLine: true })
  const sentAt = sql`coalesce(${relayLines.sentAt}, ${CLOCK})`
  const columns = { channel: line.channel, leasedUntil: null, doubtedLedger: null, due: open.queuedAt, sentAt }
  await tx.update(relayLines).set(columns).where(isLine(line))
}

/**
 * Whether there is a line that a channel of this relay might pay now. A leased line counts, because its host may leave it at any
 * time. The lines of jobs and those of runs have an index each, so each kind has its own query.
 */
export async function isWorkWaiting({ database, channels, relayKey }: Relay): Promise<boolean> {
  const own = channels.map(({ address }) => address)
  const db = await database()
  for (const isOurs of [isNull(relayLines.spender), inArray(relayLines.spender, own)]) {
    const isDue = and(IS_OPEN_LINE, isOurs, lte(relayLines.due, CLOCK), eq(relayJobs.relayKey, relayKey))
    const [waiting] = await db
      .select({ job: relayLines.job })
      .from(relayLines)
      .innerJoin(relayJobs, eq(relayJobs.id, relayLines.job))
      .where(and(isDue, not(HAS_LIVE_TRANSFER)))
      .limit(1)
    if (waiting) return true
  }
  return false
}
