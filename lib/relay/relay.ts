import type { PrivateRelayKey } from '#lib/config/relay-key.ts'
import type { Database } from '#lib/db/connection.ts'
import type { Sponsor } from '#lib/sponsor/sponsor.ts'
import type { Network } from '#lib/stellar/network.ts'
import type { Deployment } from '#lib/wallet/deployment.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import type { ShowProgress } from './progress.ts'
import type { ItemQueue } from './queue.ts'

/** What a relay works with. Any number of relays may share a database, a private key, and channels. */
export interface Relay {
  network: Network
  /** the confidential token, C… */
  token: string
  /** @throws Refusal `unavailable` until the ledger has been asked once */
  deployment(): Promise<Deployment>
  database(): Promise<Database>
  sponsor: Sponsor
  key: PrivateRelayKey
  /** the messages of the items that are sealed to this key */
  queue: ItemQueue
  /** the accounts that pay, of which this relay has the seeds */
  channels: readonly Channel[]
  times: RelayTimes
  showProgress: ShowProgress
  /** aborted when the relay closes */
  signal: AbortSignal
  now: () => Date
}

/** In seconds. */
export interface RelayTimes {
  /**
   * how long a signed transfer can apply, and so how long an item waits for the end of one that was lost. A transfer that
   * finds no room in the network's queue is banned for ten ledgers, so it has to outlast one ban of a minute, or two.
   */
  validity: number
  /** before a step that has not succeeded is tried again */
  retry: number
  /** after which a worker that gets nowhere leaves its item to the other workers, which may see more of the ledger */
  patience: number
  /** before an item for which no channel was free is looked at again, unless a channel becomes free earlier */
  rest: number
  /** before an item that the ledger has spoken against is tried anew, if no node can lag behind that answer then */
  lag: number
  /** between two rounds of chores, and two checks of the channels */
  chores: number
  /** after which a channel's events are read though it has nothing to pay: an RPC keeps them for days */
  refresh: number
  /** between two looks into the queue for messages that are due again; of new ones a worker hears at once */
  poll: number
  /** between two looks for messages whose workers have died */
  supervise: number
}

export const RELAY_TIMES: RelayTimes = {
  validity: 180,
  retry: 1,
  patience: 30,
  rest: 5,
  lag: 30,
  chores: 20,
  refresh: 43_200,
  poll: 5,
  supervise: 5,
}

/** An account that pays. */
export interface Channel extends Holder {
  address: string
}
