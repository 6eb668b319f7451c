import { Keypair } from '@stellar/stellar-sdk'
import { eq } from 'drizzle-orm'
import type { AuditDetail } from '#drizzle/schema/audit.ts'
import { relayChannels } from '#drizzle/schema/relay.ts'
import { enrol } from '#lib/cli/client/participants.ts'
import { contractorRow, insertRows } from '#lib/cli/seed/rows.ts'
import { generateRelayKey, type PrivateRelayKey } from '#lib/config/relay-key.ts'
import { devnetKeys } from '#lib/devnet/devnet.ts'
import { admitUser } from '#lib/directory/users.ts'
import { readBalance } from '#lib/relay/balance.ts'
import { submitOwnCall } from '#lib/relay/own-call.ts'
import type { Channel, Relay } from '#lib/relay/relay.ts'
import { prepareChannels } from '#lib/relay/setup.ts'
import { composeRelay, startRelay } from '#lib/server/relay.ts'
import { readAccount } from '#lib/stellar/account.ts'
import { readStop, type Stop } from '#lib/transfers/stop.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { buildMerge } from '#lib/wallet/calls.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import type { Answer } from '../support/api-client.ts'
import type { TestDatabase } from '../support/database.ts'
import { disposable } from '../support/disposable.ts'
import { openTestService, type TestService } from '../support/test-service.ts'
import { SHORT_TIMES } from './short-times.ts'

/** A user who starts batch jobs. */
export interface Client {
  address: string
  session: string
}

export interface Job {
  jobId: string
  status: string
  createdAt: number
  results: { i: number; hash: string; status: string }[]
  error?: string
}

/** How a stop of payments has ended: the detail of the entry in the audit log. */
export type Resumption = AuditDetail

/** A service that accepts batch jobs, and channels for relays. */
export interface RelayService extends Omit<TestService<'embedded'>, 'post'> {
  key: PrivateRelayKey
  channels: Keypair[]
  /** the key of the channel with this address */
  channel(address: string): Keypair
  client(): Promise<Client>
  /** Adds `ready` contractors with these addresses to a client's organisation. */
  hire(client: Client, addresses: readonly string[]): Promise<void>
  payee(): Promise<Holder>
  /** The base units that a payee has received, decrypted with its keys. */
  received(payee: Holder): Promise<bigint>
  /** a client with one contractor */
  engaged(): Promise<{ client: Client; payee: Holder }>
  post(client: Client, body?: unknown): Promise<{ status: number; body: Record<string, unknown> }>
  /** Starts a job with these amounts; resolves to its id. */
  begin(client: Client, ...amounts: number[]): Promise<string>
  read(client: Client, id: string): Promise<{ status: number; body: Job }>
  /** Waits until a job ends. */
  ended(client: Client, id: string): Promise<Job>
  /** Adopts the ledger's sequence numbers, after the test has signed with a channel's key. */
  adoptSequences(): Promise<void>
  /** The stop of payments; undefined while they go on. */
  stop(): Promise<Stop | undefined>
  /** Resolves to a function that waits until payments go on again after a stop that begins later. */
  beforeStop(): Promise<() => Promise<Resumption>>
  /** Starts a relay in this process, with short times by default. */
  relay(options?: Parameters<typeof startRelay>[1]): Promise<Awaited<ReturnType<typeof startRelay>> & AsyncDisposable>
}

/** A relay merges a deposit with the first payment that needs it. */
async function mergeDeposit(relay: Relay, channel: Channel): Promise<void> {
  const balance = await readBalance(relay, channel)
  const ledger = await relay.ledger.readLatest()
  const signed = await buildMerge(await relay.deployment(), channel.signer, balance)
  await submitOwnCall(relay, channel.address, { kind: 'merge', signed, ledger })
  await readBalance(relay, channel)
}

/** How many channels are prepared at the same time. */
const PREPARED_AT_ONCE = 5

const pick = <Body>({ status, body }: Answer<Body>) => ({ status, body })

/**
 * @param given.prepared how many channels to prepare; all by default
 * @param given.closeMs milliseconds between ledgers; with 0, only the test closes ledgers after the preparation
 */
export async function openRelayService(
  given: {
    channels?: number
    prepared?: number
    variables?: Record<string, string>
    closeMs?: number
    lag?: readonly number[]
    historyLedgers?: number
    database?: TestDatabase
    choresEveryMs?: number
  } = {},
): Promise<RelayService> {
  const { channels: count = 3, prepared = count, variables, ...options } = given
  const key = generateRelayKey()
  const channels = Array.from({ length: count }, () => Keypair.random())
  const service = await openTestService({
    ledger: 'embedded',
    ...options,
    variables: {
      BATCH_ENABLED: 'true',
      RELAY_PRIVATE_KEY: JSON.stringify(key),
      RELAY_PORT: '0',
      CHANNEL_SEEDS: channels.map((channel) => channel.secret()).join(','),
      FAUCET_SEED: devnetKeys('Standalone Network ; February 2017').issuer.secret(),
      ...variables,
    },
  })
  const { running, db } = service
  const { network } = service.ledger
  const relay = await composeRelay(running)
  const closing = given.closeMs === 0 ? setInterval(service.ledger.devnet.closeLedger, 100) : undefined
  try {
    // Ledger, service and relay share one thread, which is too slow for twenty channels at once.
    for (let first = 0; first < prepared; first += PREPARED_AT_ONCE) {
      const some = relay.channels.slice(first, Math.min(first + PREPARED_AT_ONCE, prepared))
      await prepareChannels({ relay: { ...relay, channels: some }, faucet: running.faucet, say: () => undefined })
      await Promise.all(some.map((channel) => mergeDeposit(relay, channel)))
    }
  } finally {
    clearInterval(closing)
  }
  const fixture: RelayService = {
    ...service,
    key,
    channels,
    channel: (address) => {
      const channel = channels.find((each) => each.publicKey() === address)
      if (!channel) throw new Error('no such channel')
      return channel
    },
    client: async () => {
      const address = Keypair.random().publicKey()
      return { address, session: await service.wallet(address) }
    },
    hire: async ({ address }, addresses) => {
      const user = await admitUser({ db, now: new Date() }, { kind: 'ledger', sub: address })
      const organisation = user.organisation?.id ?? ''
      const rows = addresses.map((each) => contractorRow({ organisation, address: each }))
      for (const contractor of rows) await insertRows(db, { contractors: [contractor] })
    },
    payee: () => enrol(network),
    engaged: async () => {
      const [client, payee] = [await fixture.client(), await fixture.payee()]
      await fixture.hire(client, [payee.address])
      return { client, payee }
    },
    received: async (payee) => {
      const balance = await syncBalance(network, payee)
      return balance.receiving.value + balance.spendable.value
    },
    post: async ({ session }, body) => pick(await service.ask('POST', '/batch', { session, body })),
    begin: async (client, ...amounts) => String((await fixture.post(client, { amounts })).body.jobId),
    read: async ({ session }, id) => pick(await service.ask<Job>('GET', `/batch/${id}`, { session })),
    ended: async (client, id) => {
      for (;;) {
        const { body } = await fixture.read(client, id)
        if (body.status !== 'running') return body
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    },
    adoptSequences: async () => {
      for (const { address } of await db.query.relayChannels.findMany()) {
        const { account } = await readAccount(network.rpc, address)
        const adoptedSequence = account?.seqNum ?? null
        await db.update(relayChannels).set({ adoptedSequence }).where(eq(relayChannels.address, address))
      }
    },
    stop: () => readStop(db, relay.token),
    beforeStop: async () => {
      const readResumptions = () =>
        db.query.auditLog.findMany({
          where: (entry, { eq }) => eq(entry.action, 'payments.resumed'),
          orderBy: (entry) => entry.sequence,
        })
      const { length } = await readResumptions()
      return async () => {
        for (;;) {
          const resumed = (await readResumptions())[length]
          if (resumed) return resumed.detail
          await new Promise((resolve) => setTimeout(resolve, 50))
        }
      }
    },
    relay: async (options) => disposable(await startRelay(running, { times: SHORT_TIMES, ...options })),
  }
  return fixture
}
