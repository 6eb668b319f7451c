import { and, desc, eq, sql } from 'drizzle-orm'
import {
  type ChannelProblem,
  paymentStops,
  relayChannels,
  relayLines,
  type StopProblem,
} from '#drizzle/schema/relay.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { isSeenLately, problemDuring } from '#lib/relay/channel-state.ts'
import { IS_LEASED } from './line-state.ts'

/** The condition for the channels of the token that a relay announced last: those of earlier tokens pay nothing. */
export const IS_CURRENT_TOKEN = sql<boolean>`${relayChannels.token} = (select token from relay_channels order by seen_at desc limit 1)`

/** Lists the channels of one token or all, by address. */
export async function listChannels(db: Database, token: string | undefined, now: Date) {
  const { id, account, status, recipient, createdAt, settledAt, hash, lineJob, linePosition } = transfers
  const received = db
    .select({ settledAt, hash })
    .from(transfers)
    .where(and(eq(recipient, relayChannels.address), eq(status, 'succeeded')))
    .orderBy(desc(createdAt))
    .limit(1)
    .as('received')
  const open = db
    .select({ id, job: lineJob, position: linePosition })
    .from(transfers)
    .where(and(eq(account, relayChannels.address), eq(status, 'open')))
    .limit(1)
    .as('open')
  const leased = db
    .select({ job: relayLines.job, position: relayLines.position })
    .from(relayLines)
    .where(and(eq(relayLines.channel, relayChannels.address), IS_LEASED))
    .limit(1)
    .as('leased')
  const channels = await db
    .select({
      address: relayChannels.address,
      problem: relayChannels.problem,
      problemSince: relayChannels.problemSince,
      /** by an operator: it leases no lines */
      isPaused: relayChannels.paused,
      /** by an operator: it pays nothing more */
      isRetired: relayChannels.retired,
      /** payments of its token are stopped: it leases no lines */
      isHalted: sql<boolean>`num_nonnulls(${paymentStops.since}, ${paymentStops.foreignSince}) > 0`,
      /** why its payments were not all found during a stop */
      reconcileProblem: problemDuring(paymentStops.since),
      /** the beginning of the last stop for which its payments were all found */
      reconciledStop: relayChannels.reconciledStop,
      /** when a relay last announced the channel */
      seenAt: relayChannels.seenAt,
      /** the job of the line that it pays or prepares */
      job: sql<string | null>`coalesce(${open.job}, ${leased.job})`,
      position: sql<number | null>`coalesce(${open.position}, ${leased.position})`,
      /** whether a transfer of the channel is open */
      isSending: sql<boolean>`${open.id} is not null`,
      /** when the last transfer to it settled, and its hash; null without one */
      receivedAt: received.settledAt,
      receivedHash: received.hash,
    })
    .from(relayChannels)
    .leftJoin(paymentStops, eq(paymentStops.token, relayChannels.token))
    .leftJoinLateral(open, sql`true`)
    .leftJoinLateral(leased, sql`true`)
    .leftJoinLateral(received, sql`true`)
    .where(token === undefined ? undefined : eq(relayChannels.token, token))
    .orderBy(sql`${relayChannels.address}`)
  return channels.map((channel) => ({ ...channel, isRunning: isSeenLately(channel.seenAt, now) }))
}

export type ChannelLine = Awaited<ReturnType<typeof listChannels>>[number]

/**
 * `problem`: a relay runs the channel, but it cannot pay. `halted`: payments are stopped. `paused`: an operator paused it, and it
 * pays nothing. `stopped`: no relay runs it.
 */
export const CHANNEL_STATES = [
  'free',
  'building',
  'sending',
  'problem',
  'halted',
  'paused',
  'retired',
  'stopped',
] as const

export function channelState(channel: ChannelLine): (typeof CHANNEL_STATES)[number] {
  if (channel.isRetired) return 'retired'
  if (!channel.isRunning) return 'stopped'
  if (channel.problem !== null) return 'problem'
  if (channel.isSending) return 'sending'
  if (channel.isHalted) return 'halted'
  if (channel.job === null) return channel.isPaused ? 'paused' : 'free'
  return 'building'
}

export const START_RELAY = 'Run npm run relay on the relay’s host'

const SETUP =
  'Stop the relays, run npm run setup with their DATABASE_URL and the FAUCET_SEED (docs/deploy.md, “Relays on several machines”), and start them again'

/** What each problem means, and what removes it. */
export const PROBLEM_EXPLANATIONS: Record<ChannelProblem, { meaning: string; remedy: (address?: string) => string }> = {
  account: { meaning: 'It has no account on the ledger', remedy: () => SETUP },
  registration: { meaning: 'It is not registered with the token', remedy: () => SETUP },
  sequence: {
    meaning: 'It has no sequence numbers left',
    remedy: () => 'Replace it by a new channel as in docs/runs.md, “Rotating channels”',
  },
  balance: {
    meaning: 'Its balance is zero',
    remedy: (address = 'its address') => `Send USDC to ${address} by confidential transfer`,
  },
  history: {
    meaning: 'Neither the RPC nor an archive has the events that show its balance',
    remedy: () =>
      'Ask the token’s operator for an archive of its events, set ARCHIVE_URLS to it in the environments of the relays, and restart them',
  },
}

/** Why a channel keeps payments stopped, and who has to do what. */
export const RECONCILE_EXPLANATIONS: Record<StopProblem, string> = {
  'transfer-open': 'one of its transfers is still open: it is decided within minutes',
  'rpc-behind': 'the RPC’s events end below its ledger: relays try again',
  'history-gap':
    'neither the RPC nor an archive has all its events since its last recorded payment: name an RPC or an archive that has them (docs/operate.md, “Payments are stopped”)',
  'purpose-unknown':
    'it has paid from an escrow for a payout that this database does not have: ask the employer, then resume',
  failed: 'its relay could not reconcile it: the log names the cause in the lines with “reconcile”',
}
