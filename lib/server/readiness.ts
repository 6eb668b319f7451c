import { sql } from 'drizzle-orm'
import { z } from 'zod'
import { openArchive, readCoverage } from '#lib/archive/history.ts'
import { FOREIGN, foreignSince } from '#lib/archive/identity.ts'
import { MIN_HISTORY_LEFT } from '#lib/archive/ranges.ts'
import { readWindow } from '#lib/archive/source.ts'
import { readPresent } from '#lib/db/clock.ts'
import { innermostReason } from '#lib/db/errors.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { perProcess } from '#lib/observability/per-process.ts'
import { readRelayState } from '#lib/relay/channel-state.ts'
import { readLatestLedger } from '#lib/stellar/latest-ledger.ts'
import { SILENT_SECONDS } from '#lib/stellar/view.ts'
import { formatUnits } from '#lib/text/money.ts'
import { paysForAnything } from '#lib/transfers/policy.ts'
import type { Service } from './services.ts'

const check = z
  .object({ ok: z.boolean() })
  .catchall(z.union([z.string(), z.number(), z.boolean()]))
  .meta({ description: 'whether it is available, and details: a `problem` in words if it is not' })
/** Whether one dependency of the service is available. */
export type Check = z.output<typeof check>

/** The response of GET /ready. */
export const readinessShape = z.object({
  ok: z.boolean().meta({ description: 'whether all of them are available' }),
  database: check,
  ledger: check,
  sponsor: check,
  relay: check,
  archive: check,
})
export type Readiness = z.output<typeof readinessShape>

/** The sponsor's balance is low when it covers fewer than this many transfers of the highest fee. */
export const LOW_FLOAT_TRANSFERS = 100n

const CACHE_MS = 5_000

const cache = new WeakMap<Service, { at: number; readiness: Promise<Readiness> }>()

/** Checks database, ledger, sponsor and relays, at most once in five seconds across all callers. */
export function readiness(service: Service): Promise<Readiness> {
  const at = service.now().getTime()
  const cached = cache.get(service)
  if (cached && at - cached.at < CACHE_MS) return cached.readiness
  const fresh = checkAll(service)
  cache.set(service, { at, readiness: fresh })
  return fresh
}

async function checkAll(service: Service): Promise<Readiness> {
  const causes: Causes = {}
  const attempt = async (part: Part, problem: string, check: (service: Service) => Promise<Check>): Promise<Check> => {
    try {
      return await check(service)
    } catch (error) {
      log('error', 'readiness', { problem, failure: describeFailure(error) })
      causes[part] = innermostReason(error)
      return { ok: false, problem }
    }
  }
  const [database, ledger, sponsor, relay, archive] = await Promise.all([
    attempt('database', 'the database cannot be reached', checkDatabase),
    attempt('ledger', 'the ledger cannot be reached', checkLedger),
    attempt('sponsor', 'the sponsor cannot be looked up', checkSponsor),
    attempt('relay', 'the relays cannot be looked up', checkRelays),
    attempt('archive', 'the archive cannot be looked up', checkArchive),
  ])
  const parts = { database, ledger, sponsor, relay, archive }
  noteProblems(service, parts, causes)
  return { ok: Object.values(parts).every(({ ok }) => ok), ...parts }
}

type Part = Exclude<keyof Readiness, 'ok'>
type Causes = Partial<Record<Part, string>>

/** A problem that the checks of this process have found. */
export interface FoundProblem {
  part: Part
  /** what the check says: `the float is low` */
  problem: string
  /** when a check first found it, with none since that did not */
  since: Date
  /** the error behind it, for operators: GET /ready is public */
  cause: string | undefined
}

const found = perProcess('problems', () => new WeakMap<Service['settings'], FoundProblem[]>())

/** The problems that the last checks of this process found. The checks run whenever `readiness` is called. */
export const foundProblems = ({ settings }: Pick<Service, 'settings'>): readonly FoundProblem[] =>
  found.get(settings) ?? []

function noteProblems(service: Service, parts: Omit<Readiness, 'ok'>, causes: Causes): void {
  const before = foundProblems(service)
  const now = service.now()
  const problems = Object.entries(parts).flatMap(([name, check]) => {
    const part = name as Part
    return splitProblems(check).map((problem): FoundProblem => {
      const known = before.find((one) => one.part === part && one.problem === problem)
      return { part, problem, since: known?.since ?? now, cause: causes[part] }
    })
  })
  found.set(service.settings, problems)
}

/** A check reports several problems in one text. */
const SEPARATOR = '; '
const splitProblems = ({ problem }: Check): string[] => (problem === undefined ? [] : `${problem}`.split(SEPARATOR))

async function checkDatabase(service: Service): Promise<Check> {
  const db = await service.database()
  await db.execute(sql`SELECT 1`)
  return { ok: true }
}

async function checkLedger({ network, database, now, settings: { token } }: Service): Promise<Check> {
  const { sequence: latestLedger, closedAt } = await readLatestLedger(network)
  const present = await readPresent({ database, now })
  const age = Math.max(0, Math.round(present.getTime() / 1000) - closedAt)
  const readForeign = async () => (token === undefined ? undefined : await foreignSince(await database(), token))
  // A database that cannot be reached is a problem of its part.
  const isForeign = (await readForeign().catch(() => undefined)) !== undefined
  const problem = isForeign ? FOREIGN : age > SILENT_SECONDS ? 'the last ledger is old' : undefined
  return { ok: problem === undefined, ...(problem !== undefined && { problem }), latestLedger, age }
}

async function checkSponsor({ sponsor, settings }: Service): Promise<Check> {
  // Without a key the feature is off, and the service is still ready.
  if (!sponsor) return { ok: true, configured: false }
  const address = sponsor.keypair.publicKey()
  const available = await sponsor.readBalance()
  const balance = { address, availableXlm: formatUnits(available) }
  if (!paysForAnything(sponsor.rules)) {
    const remedy = settings.token ? 'SPONSOR_CONTRACTS is empty' : 'set CONFIDENTIAL_TOKEN'
    return { ok: true, configured: false, problem: `nothing to pay for: ${remedy}`, ...balance }
  }
  const low = available < sponsor.rules.maxFee * LOW_FLOAT_TRANSFERS
  return { ok: !low, ...(low && { problem: 'the float is low' }), ...balance }
}

/**
 * Any host with the same database may run a relay. Other channels take over the items of a channel that can't pay,
 * which is reported.
 */
async function checkRelays({ settings, database, now }: Service): Promise<Check> {
  if (!settings.batch || !settings.token) return { ok: true, configured: false }
  const present = await readPresent({ database, now })
  const state = await readRelayState(await database(), settings.token, present)
  const { channels, problems, canPay, runs, runProblems, stoppedAt } = state
  const problem = [
    ...(channels > 0 ? [] : ['no relay is running']),
    ...(stoppedAt ? [`payments are stopped since ${stoppedAt.toISOString()}`] : []),
    ...(canPay ? [] : ['no channel can pay']),
    ...problems,
    ...runProblems.map((runProblem) => `no runs: ${runProblem}`),
  ].join(SEPARATOR)
  return { ok: canPay, channels, runs, ...(problem && { problem }) }
}

/** An RPC with fewer ledgers has only just started to keep them. */
const SHORTEST_WINDOW = 1_000

export const LEDGERS_MISSING = 'ledgers are missing'

/** A gap is reported but does not affect readiness: no restart fills it, only another RPC can. */
async function checkArchive({ archive: context, database }: Service): Promise<Check> {
  if (!context) return { ok: true, configured: false }
  const db = await database()
  const [{ oldestLedger, latestLedger }, archive] = await Promise.all([
    readWindow(context.network),
    openArchive(db, context.token),
  ])
  const coverage = archive && (await readCoverage(db, archive))
  const through = coverage?.ingestedThrough ?? oldestLedger - 1
  const behind = Math.max(0, latestLedger - through)
  /** the ledgers that the RPC drops before the first that is not stored */
  const historyLeft = Math.max(0, through + 1 - oldestLedger)
  const window = latestLedger - oldestLedger
  const isLate = window >= SHORTEST_WINDOW && through - oldestLedger < window * MIN_HISTORY_LEFT
  if (!coverage) {
    const problem = isLate ? 'ingestion has not started: events will be lost' : 'nothing is archived yet'
    return { ok: !isLate, behind, historyLeft, problem }
  }
  const { ingestedThrough, finalThrough, gaps, ...missing } = coverage
  const problem = [
    ...(isLate ? ['ingestion is far behind: events will be lost'] : []),
    ...(gaps > 0 ? [LEDGERS_MISSING] : []),
  ].join(SEPARATOR)
  const part = { ok: !isLate, ingestedThrough, finalThrough, behind, historyLeft, gaps, ...missing }
  return { ...part, ...(problem && { problem }) }
}
