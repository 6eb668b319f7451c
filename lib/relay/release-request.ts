import { and, eq, inArray, isNotNull, isNull, not, notInArray, or, sql } from 'drizzle-orm'
import { type ReleaseRefusal, relayChannels } from '#drizzle/schema/relay.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { IS_SEEN, isChannel } from './channel-state.ts'
import { releaseMoved } from './moved.ts'
import type { Relay } from './relay.ts'

export const RELEASE_REFUSAL_EXPLANATIONS: Record<ReleaseRefusal, string> = {
  'unknown-channel':
    'the database has no such channel for this token, or no running relay has its seed, from which alone its payments can be read',
  'not-moved': 'the channel is not on hold: there is nothing to release',
  'transfer-open': 'an earlier transfer of the channel is not decided yet: try again in a minute',
  'history-too-short':
    'the RPC no longer has the channel’s history since the last transfer that the sponsor paid for, so nothing was changed. Check on the ' +
    'ledger which payees were paid, or name an RPC with more history in STELLAR_RPC_URL. Then run npm run relay -- ' +
    'release with --unverified to adopt the ledger’s sequence number without recording transfers',
  'rpc-lags': 'the RPC’s events are behind its ledger: try again in a minute',
  failed: 'the relay could not carry it out: its log names the cause in the lines with “release”',
}

/** These pass by themselves: relays retry the release. */
const TRANSIENT = ['transfer-open', 'rpc-lags'] as const satisfies ReleaseRefusal[]

const isFinal = (refusal: ReleaseRefusal | null): boolean =>
  refusal !== null && !TRANSIENT.some((transient) => transient === refusal)

/** `pending`: a relay will try it, or has tried and will try again. `refused`: an operator has to decide what to do. */
export function releaseState(channel: {
  releaseRequestedAt: Date | null
  releaseRefusal: ReleaseRefusal | null
}): 'none' | 'pending' | 'refused' {
  if (channel.releaseRequestedAt === null) return 'none'
  return isFinal(channel.releaseRefusal) ? 'refused' : 'pending'
}

/**
 * Asks the relay that has a channel's key to release it: only a relay can open its balance. Resolves to false if the
 * channel is not held, or its release is pending already.
 */
export async function requestRelease(
  { db, now, actor }: { db: Database; now: Date; actor: Actor },
  { token, address, note }: { token: string; address: string; note: string },
): Promise<boolean> {
  const { problem, releaseRequestedAt, releaseRefusal } = relayChannels
  return await transact(db, async (tx) => {
    const requested = await tx
      .update(relayChannels)
      .set({
        releaseRequestedAt: now,
        releaseRequestedBy: actor.sub,
        releaseNote: note,
        releaseTriedAt: null,
        releaseRefusal: null,
      })
      .where(
        and(
          isChannel(token, address),
          eq(problem, 'moved'),
          or(isNull(releaseRequestedAt), notInArray(releaseRefusal, TRANSIENT)),
        ),
      )
      .returning({ address: relayChannels.address })
    if (requested.length === 0) return false
    const entry = { organisation: undefined, actor, subject: address, detail: { note } }
    await recordAudit(tx, now, { ...entry, action: 'channel.release-requested' })
    return true
  })
}

/** The condition for channels whose release is to be tried. */
const isToRelease = (token: string) =>
  and(
    eq(relayChannels.token, token),
    eq(relayChannels.problem, 'moved'),
    isNotNull(relayChannels.releaseRequestedAt),
    or(isNull(relayChannels.releaseRefusal), inArray(relayChannels.releaseRefusal, TRANSIENT)),
  )

/**
 * Releases the channels of this relay for which an operator has asked, at most once per round for each channel and all
 * relays. Records the reason if it cannot, and that no running relay has a channel's key. @throws LedgerError
 */
export async function carryOutReleases(relay: Relay): Promise<void> {
  const db = await relay.database()
  const { address, releaseTriedAt } = relayChannels
  const roundAgo = sql`clock_timestamp() - make_interval(secs => ${relay.times.chores})`
  const own = relay.channels.map((channel) => channel.address)
  const requests = await db
    .update(relayChannels)
    .set({ releaseTriedAt: sql`clock_timestamp()` })
    .where(
      and(
        isToRelease(relay.token),
        inArray(address, own),
        or(isNull(releaseTriedAt), sql`${releaseTriedAt} < ${roundAgo}`),
      ),
    )
    .returning({ address, operator: relayChannels.releaseRequestedBy, note: relayChannels.releaseNote })
  const isNobodys = and(isToRelease(relay.token), notInArray(address, own), not(IS_SEEN))
  for (const channel of await db.select({ address }).from(relayChannels).where(isNobodys)) {
    await recordRefusal(relay, channel.address, 'unknown-channel')
  }
  for (const { address: channel, operator, note } of requests) {
    const request = { address: channel, isUnverified: false, operator: operator ?? '', note: note ?? '' }
    // One channel that cannot be read must not keep the others from their release.
    const released = await releaseMoved(relay, request).catch((error: unknown): ReleaseRefusal => {
      log('error', 'release', { channel, failure: describeFailure(error) })
      return error instanceof LedgerError ? 'rpc-lags' : 'failed'
    })
    if (typeof released === 'string') await recordRefusal(relay, channel, released)
  }
}

async function recordRefusal(relay: Relay, address: string, refusal: ReleaseRefusal): Promise<void> {
  await transact(await relay.database(), async (tx) => {
    const refused = await tx
      .update(relayChannels)
      .set({ releaseRefusal: refusal })
      .where(
        and(
          isChannel(relay.token, address),
          isNotNull(relayChannels.releaseRequestedAt),
          sql`${relayChannels.releaseRefusal} is distinct from ${refusal}`,
        ),
      )
      .returning({ address: relayChannels.address })
    if (refused.length === 0 || !isFinal(refusal)) return
    await recordAudit(tx, relay.now(), {
      organisation: undefined,
      actor: { kind: 'service', sub: 'relay' },
      action: 'channel.release-refused',
      subject: address,
      detail: { reason: refusal },
    })
  })
}
