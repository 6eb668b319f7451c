import { Keypair } from '@stellar/stellar-sdk'
import { eq } from 'drizzle-orm'
import { afterAll, afterEach } from 'vitest'
import type { AuditDetail } from '#drizzle/schema/audit.ts'
import { relayChannels, relayLines } from '#drizzle/schema/relay.ts'
import { enrol } from '#lib/cli/client/participants.ts'
import { contractorRow, insertRows } from '#lib/cli/seed/rows.ts'
import { generateRelayKey } from '#lib/config/relay-key.ts'
import { devnetKeys } from '#lib/devnet/devnet.ts'
import { admitUser, becomeEmployer } from '#lib/directory/users.ts'
import { readBalance } from '#lib/relay/balance.ts'
import { submitOwnCall } from '#lib/relay/own-call.ts'
import type { Channel, Relay } from '#lib/relay/relay.ts'
import { prepareChannels } from '#lib/relay/setup.ts'
import { composeRelay, startRelay } from '#lib/server/relay.ts'
import { readAccount } from '#lib/stellar/account.ts'
import { readStop } from '#lib/transfers/stop.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { buildMerge } from '#lib/wallet/calls.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import type { Answer } from '../support/api-client.ts'
import type { TestDatabase } from '../support/database.ts'
import { disposable } from '../support/disposable.ts'
import type { Fault } from '../support/fault-proxy.ts'
import { passLedgers } from '../support/ledgers.ts'
import { readLines } from '../support/lines.ts'
import { openTestService } from '../support/test-service.ts'
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
export type RelayService = Awaited<ReturnType<typeof openRelayService>>

/** Opens such a service for the tests of the file that calls this, and lifts their faults after each. */
export async function serveJobs(given: Parameters<typeof openRelayService>[0]): Promise<RelayService> {
  const service = await openRelayService(given)
  afterAll(service.close)
  afterEach(() => service.ledger.proxy.rule(null))
  return service
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
    http?: boolean
  } = {},
) {
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
  const pause = () => new Promise((resolve) => setTimeout(resolve, 50))

  async function client(): Promise<Client> {
    const address = Keypair.random().publicKey()
    return { address, session: await service.wallet(address) }
  }

  /** Adds `ready` contractors with these addresses to a client's organisation. */
  async function hire({ address }: Client, addresses: readonly string[]): Promise<void> {
    const context = { db, now: new Date() }
    const { organisation } = await becomeEmployer(context, await admitUser(context, { kind: 'ledger', sub: address }))
    const rows = addresses.map((each) => contractorRow({ organisation, address: each }))
    for (const contractor of rows) await insertRows(db, { contractors: [contractor] })
  }

  const post = async ({ session }: Client, body?: unknown) =>
    pick(await service.ask('POST', '/batch', { session, body }))
  const read = async ({ session }: Client, id: string) =>
    pick(await service.ask<Job>('GET', `/batch/${id}`, { session }))

  /** a client with one contractor */
  async function engaged() {
    const [employer, payee] = [await client(), await enrol(network)]
    await hire(employer, [payee.address])
    return { client: employer, payee }
  }

  /** Starts a job with these amounts; resolves to its id. */
  const begin = async (by: Client, ...amounts: number[]) => String((await post(by, { amounts })).body.jobId)

  const readResumptions = () =>
    db.query.auditLog.findMany({
      where: (entry, { eq }) => eq(entry.action, 'payments.resumed'),
      orderBy: (entry) => entry.sequence,
    })

  return {
    ...service,
    key,
    channels,
    client,
    hire,
    post,
    read,
    /** the key of the channel with this address */
    channel: (address: string): Keypair => {
      const channel = channels.find((each) => each.publicKey() === address)
      if (!channel) throw new Error('no such channel')
      return channel
    },
    addressOf: (channel: number): string => channels[channel]?.publicKey() ?? '',
    linesOf: (job: string) => readLines(db, eq(relayLines.job, job)),
    payee: () => enrol(network),
    pass: (ledgers: number) => passLedgers(network, ledgers),
    /** Delays all transactions on their way to the ledger until the function that it returns is called. */
    holdSends: () => {
      const arrival = Promise.withResolvers<void>()
      service.ledger.proxy.rule(async ({ method }): Promise<Fault> => {
        if (method === 'sendTransaction') await arrival.promise
        return 'pass'
      })
      return () => arrival.resolve()
    },
    /** The context of an operator's word. */
    operator: () => {
      return { db, now: new Date(), actor: { kind: 'operator' as const, sub: 'Ada' }, token: relay.token }
    },
    engaged,
    /** The base units that a payee has received, decrypted with its keys. */
    received: async (payee: Holder): Promise<bigint> => {
      const balance = await syncBalance(network, payee)
      return balance.receiving.value + balance.spendable.value
    },
    begin,
    /** A client with one contractor, and a job of these amounts. */
    start: async (...amounts: number[]) => {
      const { client, payee } = await engaged()
      return { client, payee, job: await begin(client, ...amounts) }
    },
    /** Waits until a job ends. */
    ended: async (by: Client, id: string): Promise<Job> => {
      for (;;) {
        const { body } = await read(by, id)
        if (body.status !== 'running') return body
        await pause()
      }
    },
    /** Adopts the ledger's sequence numbers, after the test has signed with a channel's key. */
    adoptSequences: async () => {
      for (const { address } of await db.query.relayChannels.findMany()) {
        const { account } = await readAccount(network.rpc, address)
        const adoptedSequence = account?.seqNum ?? null
        await db.update(relayChannels).set({ adoptedSequence }).where(eq(relayChannels.address, address))
      }
    },
    /** The stop of payments; undefined while they go on. */
    stop: () => readStop(db, relay.token),
    /** Resolves to a function that waits until payments go on again after a stop that begins later. */
    beforeStop: async (): Promise<() => Promise<Resumption>> => {
      const { length } = await readResumptions()
      return async () => {
        for (;;) {
          const resumed = (await readResumptions())[length]
          if (resumed) return resumed.detail
          await pause()
        }
      }
    },
    /** Starts a relay in this process, with short times by default. */
    relay: async (options?: Parameters<typeof startRelay>[1]) =>
      disposable(await startRelay(running, { times: SHORT_TIMES, ...options })),
  }
}
