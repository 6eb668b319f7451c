import type { Keypair } from '@stellar/stellar-sdk'
import type { PrivateRelayKey } from '#lib/config/relay-key.ts'
import type { Database } from '#lib/db/connection.ts'
import type { Sponsor } from '#lib/sponsor/sponsor.ts'
import type { Network } from '#lib/stellar/network.ts'
import type { Deployment } from '#lib/wallet/deployment.ts'
import type { Holder } from '#lib/wallet/keys.ts'

/** What a relay works with. Any number of them may share a database, a private key, and channels. */
export interface Relay {
  network: Network
  /** the confidential token, C… */
  token: string
  /** @throws Refusal `unavailable` until the ledger has been asked once */
  deployment(): Promise<Deployment>
  database(): Promise<Database>
  sponsor: Sponsor
  key: PrivateRelayKey
  /** the accounts that pay, each a lane of its own */
  channels: readonly Keypair[]
  /** the name under which it holds leases */
  name: string
  times: RelayTimes
  now: () => Date
}

/** In seconds. */
export interface RelayTimes {
  /** for which a channel is held at a time: so long a relay that has died keeps others off */
  lease: number
  /** for which a signed transfer can apply: so long an item waits for the death of one that was lost */
  validity: number
  /** between two looks for work that nobody has told of */
  tick: number
  /** between two sweeps */
  sweep: number
  /** before a channel with a problem is tried again */
  rest: number
  /** after which a channel's events are read though it has nothing to pay: an RPC keeps them for days */
  refresh: number
}

export const RELAY_TIMES: RelayTimes = { lease: 20, validity: 60, tick: 1, sweep: 30, rest: 30, refresh: 43_200 }

/** A channel as a lane uses it. */
export interface Channel extends Holder {
  address: string
}
