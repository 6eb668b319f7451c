import type { Database } from '#lib/db/connection.ts'
import { type ChannelRecord, findChannels } from './channel-record.ts'
import { countRelays } from './presence.ts'

/** How the relays of a database are, as anybody can find out who has the database. */
export interface RelayState {
  /** those that run */
  relays: number
  /** channels of which some relay that ran lately has the key */
  channels: number
  /** what is wrong with some of them: `G…: registration` */
  problems: string[]
  /** whether any channel can pay at all */
  canPay: boolean
}

/** A channel that no relay has spoken of for so long (ms) is nobody's any more. */
const LATELY = 300_000

/** Whether a relay that runs may be taken to have a channel of which one last spoke at `seenAt`. */
export const isSeenLately = (seenAt: Date, now: Date): boolean => now.getTime() - seenAt.getTime() < LATELY

export async function readRelayState(db: Database, token: string, now: Date): Promise<RelayState> {
  const [relays, known] = await Promise.all([countRelays(db), findChannels(db, token)])
  const channels = known.filter(({ seenAt }) => isSeenLately(seenAt, now))
  return {
    relays,
    channels: channels.length,
    problems: channels.flatMap(({ address, problem }) => (problem === null ? [] : [`${address}: ${problem}`])),
    canPay: channels.some(isFit),
  }
}

/** One that is short of money may still have enough for some items. */
const isFit = ({ problem }: ChannelRecord): boolean => problem === null || problem === 'balance'
