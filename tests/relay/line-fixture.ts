import { randomUUID } from 'node:crypto'
import { Keypair } from '@stellar/stellar-sdk'
import { eq, sql } from 'drizzle-orm'
import { paymentStops, relayChannels, relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import { quotas, type Transfer, type TransferStatus, transfers } from '#drizzle/schema/transfers.ts'
import {
  batchRow,
  contractorRow,
  identityRow,
  insertRows,
  itemRow,
  jobRow,
  organisationRow,
  payoutRow,
} from '#lib/cli/seed/rows.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { claimLine, type Hold, type LeasedLine, leaseLine } from '#lib/relay/lease.ts'
import { type Channel, RELAY_TIMES, type Relay } from '#lib/relay/relay.ts'
import type { SignedTransaction } from '#lib/stellar/node/envelope.ts'
import type { Decision } from '#lib/transfers/decide.ts'
import { isLine, type LineId } from '#lib/transfers/line.ts'
import type { Intent } from '#lib/transfers/policy.ts'
import { EVERYBODY } from '#lib/transfers/quota.ts'
import { type RecordingTerms, recordTransfer } from '#lib/transfers/record.ts'
import { findTransfer, setOf } from '#lib/transfers/rows.ts'
import { settle } from '#lib/transfers/settle.ts'
import { readStop, stopPayments } from '#lib/transfers/stop.ts'
import { cloneDatabase } from '../support/database.ts'
import { TOKEN } from '../support/inner-transaction.ts'
import { readLines } from '../support/lines.ts'

export { TOKEN } from '../support/inner-transaction.ts'

export const NOW = new Date('2026-03-01T12:00:00Z')
export const LATER = new Date('2026-03-01T12:00:05Z')
const RELAY_KEY = 'key'
const DAY = '2026-03-01'
/** the payee of every transfer that a test records, and of every line of a run */
export const RECIPIENT = Keypair.random().publicKey()
const MUCH = 1_000_000n
export const NO_LIMITS = {
  transfersPerAccount: 1_000_000,
  stroopsPerAccount: MUCH,
  dailyBudget: MUCH,
  callsBudget: MUCH,
}

export type LineFixture = Awaited<ReturnType<typeof openLineFixture>>

/** Lines and channels in a separate database, and the relay's functions that lease and end lines, without ledger or prover. */
export async function openLineFixture() {
  const database = await cloneDatabase()
  const db = await database.store.database()
  const wallets = new Map<string, string>()

  /** a host with the seeds of these channels, as far as lines and channels are concerned */
  function relayWith(...addresses: string[]): Relay {
    const part: Partial<Relay> = {
      database: async () => db,
      token: TOKEN,
      relayKey: RELAY_KEY,
      channels: addresses.map(channelAt),
      times: RELAY_TIMES,
      signal: new AbortController().signal,
      now: () => LATER,
      sponsor: { now: () => LATER } as Relay['sponsor'],
    }
    return part as Relay
  }

  async function makeJob(count: number, relayKey = RELAY_KEY): Promise<LineId[]> {
    const job = jobRow({ userSub: randomUUID(), relayKey, createdAt: NOW })
    const row = { job: job.id, quotaAccount: job.userSub, queuedAt: NOW }
    const items = Array.from({ length: count }, (_, position) => itemRow({ ...row, position }))
    await insertRows(db, { jobs: [job], items })
    return items.map(({ job, position }) => ({ job, position }))
  }

  /** Makes the run of an employer with a line for each of these channels. */
  async function makeRun(employer: string, channels: readonly string[]): Promise<LineId[]> {
    const organisation = wallets.get(employer) ?? (await makeOrganisation(db, employer))
    wallets.set(employer, organisation)
    const contractors = channels.map(() => contractorRow({ organisation }))
    const batch = batchRow({ organisation, status: 'ready', payoutCount: channels.length })
    const payouts = contractors.map(({ id: contractor }) =>
      payoutRow({ organisation, batch: batch.id, contractor, address: RECIPIENT, status: 'ready' }),
    )
    const run = { batch: batch.id, manifest: 'M', signature: 'S', quotaDay: DAY }
    const job = jobRow({ userKind: 'ledger', userSub: employer, createdAt: NOW, ...run })
    const row = { job: job.id, recipient: RECIPIENT, quotaAccount: employer, queuedAt: NOW }
    const items = payouts.map(({ id: payout }, position) =>
      itemRow({ ...row, position, payout, spender: channels[position] }),
    )
    await insertRows(db, { contractors, batches: [batch], payouts, jobs: [job], items })
    const count = channels.length
    await db
      .insert(quotas)
      .values([employer, EVERYBODY].map((account) => ({ account, day: DAY, count })))
      .onConflictDoUpdate({ target: [quotas.account, quotas.day], set: { count: sql`${quotas.count} + ${count}` } })
    return items.map(({ job, position }) => ({ job, position }))
  }

  /** Leases the next line of a channel; undefined if none waits. */
  const lease = (channel: string, { held, canRun = true }: { held?: Hold; canRun?: boolean } = {}) =>
    leaseLine(relayWith(channel), channelAt(channel), { held, canRun })

  async function makeLine(relayKey?: string): Promise<LineId> {
    const [line] = await makeJob(1, relayKey)
    if (!line) throw new Error('no line was made')
    return line
  }

  /** `lease`, which must find a line. */
  async function take(channel: string): Promise<LeasedLine> {
    const line = await lease(channel)
    if (!line) throw new Error('no line waits for the channel')
    return line
  }

  async function sponsor(name: string, intent: Partial<Record<keyof Intent, unknown>>, terms: RecordingTerms) {
    const inner = { hashHex: name } as SignedTransaction
    const bump = { hash: `outer ${name}`, envelope: 'E', bid: 1n }
    const { transfer } = await recordTransfer(
      db,
      { inner, intent: { ...intent, maxTime: 1n } as Intent, terms, now: NOW },
      { bump, sponsor: 'S', recordedLedger: 1, limits: NO_LIMITS, available: MUCH },
    )
    return transfer
  }

  return {
    database,
    db,
    relayWith,
    /** Makes channels without a problem, and removes the lines, transfers, channels and stop of an earlier test. */
    makeChannels: async (...addresses: string[]) => {
      for (const table of [transfers, relayLines, relayChannels, paymentStops]) await db.delete(table)
      // Adopted, and compared with the ledger at any time of these tests.
      const known = { token: TOKEN, seenAt: new Date(), adoptedSequence: 0n, comparedAt: new Date('2100-01-01') }
      await db.insert(relayChannels).values(addresses.map((address) => ({ ...known, address, runs: true })))
    },
    makeJob,
    makeLine,
    makeRun,
    lease,
    take,
    /** Makes a line of a job, and leases it on channel A, where no other waits. */
    takeNew: async () => {
      await makeLine()
      return await take('A')
    },
    setLine: (line: LineId, columns: Partial<typeof relayLines.$inferInsert>) =>
      db.update(relayLines).set(columns).where(isLine(line)),
    setChannel: (address: string, columns: Partial<typeof relayChannels.$inferInsert>) =>
      db.update(relayChannels).set(columns).where(eq(relayChannels.address, address)),
    /**
     * Records the transfer of a leased line as the sponsor does: the line is claimed in the same SQL transaction. Its envelope has
     * the inner hash `name`.
     */
    record: async (line: LeasedLine, name: string = randomUUID(), number = 1n) => {
      const { job, position, channel, quotaAccount, payout } = line
      const call = payout === null ? { kind: 'transfer', owner: null } : { kind: 'delegated', owner: quotaAccount }
      const claim = (tx: Database) => claimLine(tx, relayWith(), line, number)
      const ofLine = { job, position, sealedOpening: `after ${name}`, claim }
      return await sponsor(
        name,
        { ...call, account: channel, to: RECIPIENT, sequenceNumber: number },
        { quotaAccount, ...(payout !== null && { payoutId: payout }), line: ofLine },
      )
    },
    /** Records a transfer that a client has signed, as the sponsor does. */
    recordOfClient: ({
      from,
      to = RECIPIENT,
      payoutId,
    }: {
      from: string
      to?: string
      payoutId?: string | undefined
    }) =>
      sponsor(
        randomUUID(),
        { kind: 'transfer', owner: null, account: from, to, sequenceNumber: 1n },
        payoutId === undefined ? {} : { payoutId },
      ),
    /** Settles a recorded transfer, at `LATER` by default. */
    settle: async ({ id }: Pick<Transfer, 'id'>, status: Exclude<TransferStatus, 'open'>, now = LATER) => {
      const recorded = await findTransfer(db, id)
      if (!recorded) throw new Error('no such transfer')
      const decision = decisionOf(status, recorded.envelopes[0]?.innerHash ?? '')
      await settle(db, id, { decision, lookedUp: setOf(recorded.envelopes), now })
    },
    lineOf: async (id: LineId) => {
      const [line] = await readLines(db, isLine(id))
      if (!line) throw new Error('no such line')
      return line
    },
    jobOf: (id: string) => db.query.relayJobs.findFirst({ where: eq(relayJobs.id, id) }),
    channelOf: (address: string) => db.query.relayChannels.findFirst({ where: eq(relayChannels.address, address) }),
    /** Stops payments, as a host does that sees a channel move. */
    stop: (channel = 'A') => transact(db, (tx) => stopPayments(tx, { token: TOKEN, channel, now: LATER })),
    /** The present stop; undefined while payments go on. */
    stopOf: () => readStop(db, TOKEN),
    close: () => database.drop(),
  }
}

/** The id of a line alone. */
export const idOf = ({ job, position }: LineId): LineId => ({ job, position })
export const DAY_MS = 24 * 60 * 60_000
export const FAILED = { outcome: 'failed', error: 'would-fail' } as const

async function makeOrganisation(db: Database, wallet: string): Promise<string> {
  const organisation = organisationRow()
  const identities = [identityRow({ sub: wallet, organisation: organisation.id })]
  await insertRows(db, { organisations: [organisation], identities })
  return organisation.id
}

export const channelAt = (address: string) => ({ address }) as Channel

function decisionOf(status: Exclude<TransferStatus, 'open'>, hash: string): Decision {
  if (status === 'unknown' || status === 'expired') return { status }
  const succeeded = status === 'succeeded'
  const record = { succeeded, consumed: true, applied: hash, hash, outerHash: null, ledger: 2, closedAt: 1 }
  const outcome = { feeCharged: 0n, resultCode: succeeded ? 'txSuccess' : 'txFailed', contractError: null }
  return { status, record: { ...record, ...outcome }, feeCharged: 0n }
}
