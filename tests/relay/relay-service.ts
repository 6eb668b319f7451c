import { Keypair } from '@stellar/stellar-sdk'
import { GET as getJob } from '#app/api/batch/[jobId]/route.ts'
import { POST as postBatch } from '#app/api/batch/route.ts'
import { contractors } from '#drizzle/schema/directory.ts'
import { mintSession } from '#lib/auth/session.ts'
import { enrol } from '#lib/cli/participants.ts'
import { readEnvironment } from '#lib/config/environment.ts'
import { generateRelayKey, type PrivateRelayKey } from '#lib/config/relay-key.ts'
import { admitUser } from '#lib/directory/user.ts'
import type { RelayTimes } from '#lib/relay/relay.ts'
import { prepareChannels } from '#lib/relay/setup.ts'
import { composeRelay, startRelay } from '#lib/server/relay.ts'
import { provideService } from '#lib/server/services.ts'
import { type RunningService, startService } from '#lib/server/start.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import { type Ground, openGround } from '../support/ground.ts'
import { SHORT_TIMES } from './short-times.ts'

/** A user who has batches run. */
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

/** A ground with a service on it that accepts batches, and with channels for relays. */
export interface RelayService extends Ground {
  service: RunningService
  key: PrivateRelayKey
  channels: Keypair[]
  client(): Promise<Client>
  /** makes contractors of a client's organisation out of these addresses, ready to be paid */
  hire(client: Client, addresses: readonly string[]): Promise<void>
  payee(): Promise<Holder>
  /** what a payee has been paid, in base units, as only it can read it */
  received(payee: Holder): Promise<bigint>
  post(client: Client, body?: unknown): Promise<{ status: number; body: Record<string, unknown> }>
  read(client: Client, id: string): Promise<{ status: number; body: Job }>
  /** waits until a job has ended */
  ended(client: Client, id: string, seconds?: number): Promise<Job>
  /** a relay in this process */
  relay(times?: Partial<RelayTimes>): ReturnType<typeof startRelay>
}

/** @param given.prepared how many of the channels are made fit; all by default */
export async function openRelayService(
  given: { channels?: number; prepared?: number; variables?: Record<string, string> } = {},
): Promise<RelayService> {
  const { channels: count = 3, prepared = count } = given
  const key = generateRelayKey()
  const channels = Array.from({ length: count }, () => Keypair.random())
  const ground = await openGround({
    BATCH_ENABLED: 'true',
    RELAY_PRIVATE_KEY: JSON.stringify(key),
    RELAY_PORT: '0',
    CHANNEL_SEEDS: channels.map((channel) => channel.secret()).join(','),
    ...given.variables,
  })
  const variables = { ...ground.variables, FAUCET_SEED: ground.devnet.issuerSecret }
  const service = await startService(readEnvironment(variables), ground.shared)
  provideService(Promise.resolve(service))
  const relay = await composeRelay(service)
  const fit = { ...relay, channels: relay.channels.slice(0, prepared) }
  await prepareChannels(fit, service.faucet, () => undefined)
  const request = (client: Client, path: string, init: RequestInit = {}) =>
    new Request(`http://localhost:3000/api${path}`, {
      ...init,
      headers: { Authorization: `Bearer ${client.session}`, ...init.headers },
    })
  const fixture: RelayService = {
    ...ground,
    variables,
    service,
    key,
    channels,
    client: async () => {
      const address = Keypair.random().publicKey()
      const identity = { kind: 'ledger', sub: address } as const
      return { address, session: await mintSession(service.settings.sessions, identity, new Date()) }
    },
    hire: async ({ address }, addresses) => {
      const user = await admitUser(ground.db, { kind: 'ledger', sub: address }, new Date())
      const organisation = user.organisation?.id ?? ''
      for (const each of addresses) {
        const row = { organisation, name: 'Somebody', status: 'ready', address: each } as const
        await ground.db.insert(contractors).values({ ...row, inviteExpiresAt: new Date() })
      }
    },
    payee: () => enrol(ground.network),
    received: async ({ signer, keys }) => {
      const balance = await syncBalance(ground.network, { address: signer.publicKey(), vk: keys.vk })
      return balance.receiving.value + balance.spendable.value
    },
    post: async (client, body) => {
      const json = { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } }
      const init = { method: 'POST', ...(body !== undefined && json) }
      const response = await postBatch(request(client, '/batch', init), undefined)
      return { status: response.status, body: (await response.json()) as Record<string, unknown> }
    },
    read: async (client, id) => {
      const response = await getJob(request(client, `/batch/${id}`), { params: Promise.resolve({ jobId: id }) })
      return { status: response.status, body: (await response.json()) as Job }
    },
    ended: async (client, id, seconds = 200) => {
      const deadline = Date.now() + seconds * 1000
      for (;;) {
        const { body } = await fixture.read(client, id)
        if (body.status !== 'running') return body
        if (Date.now() > deadline) throw new Error(`the job still runs: ${JSON.stringify(body)}`)
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    },
    relay: (times = SHORT_TIMES) => startRelay(service, { times }),
    close: async () => {
      await service.close()
      await ground.close()
    },
  }
  return fixture
}
