import type { Database } from '#lib/db/connection.ts'
import { type ChannelRecord, findChannels, isSeenLately } from './channels.ts'

/** How the relays of a database are, as everything that has the database can find out. */
export interface RelayState {
  /** whether any relay runs */
  isRunning: boolean
  /** channels of which a relay that runs has the key */
  channels: number
  /** what is wrong with some of them: `G…: registration` */
  problems: string[]
  /** whether any channel can pay at all */
  canPay: boolean
}

export async function readRelayState(db: Database, token: string, now: Date): Promise<RelayState> {
  const channels = (await findChannels(db, token)).filter(({ seenAt }) => isSeenLately(seenAt, now))
  return {
    isRunning: channels.length > 0,
    channels: channels.length,
    problems: channels.flatMap(({ address, problem }) => (problem === null ? [] : [`${address}: ${problem}`])),
    canPay: channels.some(isFit),
  }
}

const isFit = ({ problem }: ChannelRecord): boolean => problem === null
