import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { enrol } from '#lib/cli/client/participants.ts'
import { readEnvironment } from '#lib/config/environment.ts'
import { Refusal, statusOf } from '#lib/refusal/refusal.ts'
import { type RunningService, startService } from '#lib/server/start.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { adoptTransfersOf } from '#lib/transfers/adoption.ts'
import { decodeInner } from '#lib/transfers/policy.ts'
import { sponsorTransfer } from '#lib/transfers/submit.ts'
import { openTracker } from '#lib/transfers/track.ts'
import { type Instance, type Pair, type Party, runHistory } from '../chaos/history.ts'
import { openLedgerPages } from '../chaos/ledger-pages.ts'
import { findUntruths } from '../chaos/truth.ts'
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts'
import { openEmployer } from '../support/fixtures.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

/** All histories run on PostgreSQL, where instances can wait for a row of each other; fewer run on PGlite. */
const HISTORIES = inject('postgres') ? 20 : 5
const AT_ONCE = 5
const STEPS = 14

let service: TestService<'embedded'>
let other: RunningService
let second: FaultProxy
let pair: Pair
let faults = 0
let standsStill = false
let closing: NodeJS.Timeout

beforeAll(async () => {
  const closeMs = 0
  service = await openTestService({ ledger: 'embedded', closeMs, variables: { TRANSFER_WAIT: '4' } })
  const { closeLedger } = service.ledger.devnet
  closing = setInterval(() => {
    if (!standsStill) closeLedger()
  }, 200)
  second = await startFaultProxy(service.ledger.devnet.rpcUrl)
  const variables = { ...service.variables, STELLAR_RPC_URL: second.url }
  other = await startService(readEnvironment(variables), service.database.shared)
  pair = {
    instances: [service.running, other].map(instanceOf),
    relays: [],
    proxies: [service.ledger.proxy, second],
    network: service.ledger.network,
    readLedger: openLedgerPages(service.ledger.network),
    db: service.db,
    ...(service.database.shared === undefined && { breakDatabase }),
    standStill: async (milliseconds) => {
      standsStill = true
      await pause(milliseconds)
      standsStill = false
    },
    closeLedgers: (count) => {
      for (let closed = 0; closed < count; closed += 1) closeLedger()
    },
  }
})
afterAll(async () => {
  clearInterval(closing)
  await other?.close()
  await second?.close()
  await service?.close()
})

const pause = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds))

function instanceOf(running: RunningService): Instance {
  const { tracker, sponsor, network, now, settings } = running
  let thawed = Promise.resolve()
  const database = async () => {
    await thawed
    return await running.database()
  }
  // The process loses its memory; requests that wait for it keep waiting.
  const kill = async () => {
    void tracker.stop()
    Object.assign(tracker, openTracker({ network, database, now }))
    return true
  }
  void kill()
  return {
    post: async ({ address }, { signedXDR, ...terms }) => {
      const context = { tracker, sponsor, waitMs: settings.transferWait }
      try {
        const inner = decodeInner(signedXDR, network.passphrase)
        if (inner.source !== address) throw new Error('another payer')
        return { status: 200, body: { ...(await sponsorTransfer(context, inner, terms)) } }
      } catch (error) {
        if (error instanceof LedgerError) return { status: 503, body: { code: error.code } }
        if (!(error instanceof Refusal)) throw error
        return { status: statusOf(error.code), body: { code: error.code, ...error.details } }
      }
    },
    poll: async ({ address }) => {
      const rows = await service.db.query.identities.findMany()
      const organisation = rows.find(({ sub }) => sub === address)?.organisation
      if (organisation) await adoptTransfersOf(service.db, tracker, [organisation])
    },
    kill,
    // The instance has queried the ledger, and continues later with outdated responses.
    freeze: async (milliseconds) => {
      thawed = pause(milliseconds)
      await thawed
      return true
    },
  }
}

async function breakDatabase(): Promise<void> {
  await service.db.execute(
    sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
  )
}

async function makeParty(): Promise<Party> {
  const payer = await service.employ()
  const payee = await enrol(service.ledger.network)
  const employer = await openEmployer(service, payer.address)
  const contractor = await employer.engage('a payee', { address: payee.signer.publicKey() })
  const payouts: string[] = []
  for (let month = 0; month < 3; month += 1) {
    const [payout] = (await employer.prepare([contractor])).payouts
    if (payout) payouts.push(payout.id)
  }
  return { payer, payee, payouts, signed: [] }
}

const rounds = Array.from({ length: HISTORIES / AT_ONCE }, (_, round) => round)
test.each(rounds)('five concurrent histories, round %i: responses, rows and ledger agree', async (round) => {
  const parties = await Promise.all(Array.from({ length: AT_ONCE }, makeParty))
  const happened = await runHistory(pair, parties, 1_000 + round, STEPS * AT_ONCE)
  faults += happened.faults
  expect(await findUntruths(pair, happened, service.ledger.sponsor.publicKey())).toEqual([])
  expect(happened.told.length).toBeGreaterThan(0)
})

test('exercises every kind of action', async () => {
  const ends = new Set((await service.db.query.transfers.findMany()).map(({ status }) => status))
  expect(faults).toBeGreaterThan(3 * HISTORIES)
  expect(ends.has('succeeded')).toBe(true)
})
