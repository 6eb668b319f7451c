import { sql } from 'drizzle-orm'
import { z } from 'zod'
import { openArchive, readCoverage } from '#lib/archive/history.ts'
import { FOREIGN, foreignSince } from '#lib/archive/identity.ts'
import { MIN_HISTORY_LEFT } from '#lib/archive/ranges.ts'
import { readWindow } from '#lib/archive/source.ts'
import { readVersion, type Version } from '#lib/config/version.ts'
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

const checkShape = z
  .object({ ok: z.boolean() })
  .catchall(z.union([z.string(), z.number(), z.boolean()]))
  .meta({ description: 'whether it is available, and details: a `problem` in words if it is not' })
/** Whether one dependency of the service is available. */
export type Check = z.output<typeof checkShape>

/** The response of GET /ready. */
export const readinessShape = z.object({
  ok: z.boolean().meta({ description: 'whether all of them are available' }),
  version: z.string().meta({ description: 'the release that runs' }),
  commit: z
    .string()
    .optional()
    .meta({ description: 'the commit from which it was built, `-dirty` if files differed from it' }),
  database: checkShape,
  ledger: checkShape,
  sponsor: checkShape,
  relay: checkShape,
  archive: checkShape,
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
  const attempt = async (problem: string, check: (service: Service) => Promise<Finding>): Promise<Finding> => {
    try {
      return await check(service)
    } catch (error) {
      log('error', 'readiness', { problem, failure: describeFailure(error) })
      return { check: { ok: false }, problems: [problem], cause: innermostReason(error) }
    }
  }
  const [database, ledger, sponsor, relay, archive] = await Promise.all([
    attempt('the database cannot be reached', checkDatabase),
    attempt('the ledger cannot be reached', checkLedger),
    attempt('the sponsor cannot be looked up', checkSponsor),
    attempt('the relays cannot be looked up', checkRelays),
    attempt('the archive cannot be looked up', checkArchive),
  ])
  const findings = { database, ledger, sponsor, relay, archive }
  noteProblems(service, findings)
  const checks = Object.entries(findings).map(([part, finding]) => [part, present(finding)])
  const parts: Record<Part, Check> = Object.fromEntries(checks)
  const { version, commit } = readVersion()
  return { ok: Object.values(parts).every(({ ok }) => ok), version, ...(commit && { commit }), ...parts }
}

type Part = Exclude<keyof Readiness, 'ok' | keyof Version>

/** The result of a check, and its problems in words. */
interface Finding {
  check: Check
  problems?: readonly string[]
  cause?: string
}

const present = ({ check, problems = [] }: Finding): Check => ({
  ...check,
  ...(problems.length > 0 && { problem: problems.join('; ') }),
})

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

function noteProblems(service: Service, findings: Record<Part, Finding>): void {
  const before = foundProblems(service)
  const now = service.now()
  const noted = Object.entries(findings).flatMap(([name, { problems = [], cause }]) => {
    const part = name as Part
    return problems.map((problem): FoundProblem => {
      const known = before.find((one) => one.part === part && one.problem === problem)
      return { part, problem, since: known?.since ?? now, cause }
    })
  })
  found.set(service.settings, noted)
}

/** A feature that is not configured. The service is ready without it. */
const OFF: Finding = { check: { ok: true, configured: false } }

async function checkDatabase(service: Service): Promise<Finding> {
  const db = await service.database()
  await db.execute(sql`SELECT 1`)
  return { check: { ok: true } }
}

async function checkLedger({ network, database, now, settings: { token } }: Service): Promise<Finding> {
  const { sequence: latestLedger, closedAt } = await readLatestLedger(network)
  const present = await readPresent({ database, now })
  const age = Math.max(0, Math.round(present.getTime() / 1000) - closedAt)
  const readForeign = async () => (token === undefined ? undefined : await foreignSince(await database(), token))
  // A database that cannot be reached is a problem of its part.
  const isForeign = (await readForeign().catch(() => undefined)) !== undefined
  const problems = isForeign ? [FOREIGN] : age > SILENT_SECONDS ? ['the last ledger is old'] : []
  return { check: { ok: problems.length === 0, latestLedger, age }, problems }
}

async function checkSponsor({ sponsor, settings }: Service): Promise<Finding> {
  if (!sponsor) return OFF
  const address = sponsor.keypair.publicKey()
  const available = await sponsor.readBalance()
  const balance = { address, availableXlm: formatUnits(available) }
  if (!paysForAnything(sponsor.rules)) {
    const remedy = settings.token ? 'SPONSOR_CONTRACTS is empty' : 'set CONFIDENTIAL_TOKEN'
    return { check: { ...OFF.check, ...balance }, problems: [`nothing to pay for: ${remedy}`] }
  }
  const low = available < sponsor.rules.maxFee * LOW_FLOAT_TRANSFERS
  return { check: { ok: !low, ...balance }, problems: low ? ['the float is low'] : [] }
}

/**
 * Any host with the same database may run a relay. Other channels take over the items of a channel that can't pay,
 * which is reported.
 */
async function checkRelays({ settings, database, now }: Service): Promise<Finding> {
  if (!settings.batch || !settings.token) return OFF
  const present = await readPresent({ database, now })
  const state = await readRelayState(await database(), settings.token, present)
  const { channels, canPay, runs, stoppedAt } = state
  const problems = [
    ...(channels > 0 ? [] : ['no relay is running']),
    ...(stoppedAt ? [`payments are stopped since ${stoppedAt.toISOString()}`] : []),
    ...(canPay ? [] : ['no channel can pay']),
    ...state.problems,
    ...state.runProblems.map((problem) => `no runs: ${problem}`),
  ]
  return { check: { ok: canPay, channels, runs }, problems }
}

/** An RPC with fewer ledgers has only just started to keep them. */
const SHORTEST_WINDOW = 1_000

export const LEDGERS_MISSING = 'ledgers are missing'

/** A gap is reported but does not affect readiness: no restart fills it, only another RPC can. */
async function checkArchive({ archive: context, database }: Service): Promise<Finding> {
  if (!context) return OFF
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
    return { check: { ok: !isLate, behind, historyLeft }, problems: [problem] }
  }
  const { ingestedThrough, finalThrough, gaps, ...missing } = coverage
  const problems = [
    ...(isLate ? ['ingestion is far behind: events will be lost'] : []),
    ...(gaps > 0 ? [LEDGERS_MISSING] : []),
  ]
  return { check: { ok: !isLate, ingestedThrough, finalThrough, behind, historyLeft, gaps, ...missing }, problems }
}
