import { and, count, desc, eq, inArray, isNull, sql } from 'drizzle-orm'
import { contractors } from '#drizzle/schema/directory.ts'
import { relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { NAMES_SHOWN, type Notice, type RecordCondition } from './attention.ts'
import { askTo, describeCauses, type FailedFor, stepAfter } from './causes.ts'
import { explainLine } from './explanation.ts'
import { anyOf } from './filters.ts'
import { isUnresolved } from './line-state.ts'

const ANOTHER_BATCH = 'pay only those payees, from its own balance and in a batch of payouts'
const NO_NEW_JOB = ' A new job would begin with other payees, who may have been paid.'

const UNKNOWN = askTo(
  'check with the payees which payments arrived, and pay only the others, in a batch of payouts',
  NO_NEW_JOB,
)

const TAMPERED = {
  actor: 'operator',
  why: 'manifest-invalid: the database differs from what the employer has signed, or the delegation or the account’s signers were changed',
  remedy:
    'Follow docs/operate.md, “A run was stopped as changed”: first, tell the employer, by a contact that is not from this service, to revoke the delegations of this batch and pay nothing of it.',
  telling:
    'Please revoke the delegations of this batch, and neither run nor pay it until you have compared each payee’s address, and what has been paid already, with your own records. Did you change its delegation, or your account’s signers, after you signed the run?',
} as const

/** The jobs of the few unresolved lines: a job may have thousands of others. */
const unresolvedJobs = sql`select ${relayLines.job} from ${relayLines} join ${relayJobs} on ${relayJobs.id} = ${relayLines.job} where ${isUnresolved}`

/** A job or run has ended with lines that were not paid, and nothing shows that the employer has paid them since. */
export const jobFailed: RecordCondition = {
  level: 'bad',
  holds: () => and(eq(relayJobs.status, 'failed'), anyOf(relayJobs.id, unresolvedJobs)),
  order: [desc(relayJobs.endedAt), relayJobs.id],
  describe: async (db, ids) => {
    const [causes, payees, sizes] = await Promise.all([findCauses(db, ids), findPayees(db, ids), countLines(db, ids)])
    return ({ id, batch, organisation }) => ({
      ...describeEnds(causes.get(id) ?? [], sizes.get(id) ?? 0, batch !== null),
      ...namePayees(payees.get(id) ?? [], organisation?.id),
    })
  },
}

/** Some unresolved lines of a job that ended for the same reason. */
interface Ending extends FailedFor {
  isUnknown: boolean
  isTampered: boolean
}

function describeEnds(endings: readonly Ending[], lines: number, isRun: boolean): Notice {
  const sum = (some: readonly Ending[]) => some.reduce((total, ending) => total + ending.count, 0)
  const unknown = sum(endings.filter(({ isUnknown }) => isUnknown))
  const all = `${lines} ${lines === 1 ? 'transfer' : 'transfers'}${isRun ? ' of its run' : ''}`
  const facts = { what: describeCounts(sum(endings) - unknown, unknown, all), why: describeCauses(endings) }
  if (endings.some(({ isTampered }) => isTampered)) return { ...facts, ...TAMPERED }
  if (unknown > 0) return { ...facts, ...UNKNOWN }
  return {
    ...facts,
    ...(isRun ? stepAfter(endings, 'run the batch again') : stepAfter(endings, ANOTHER_BATCH, { note: NO_NEW_JOB })),
  }
}

function describeCounts(failed: number, unknown: number, all: string): string {
  if (unknown === 0) return `${failed} of ${all} failed`
  const lost = `${unknown === 1 ? 'has' : 'have'} an unknown outcome`
  return failed === 0 ? `${unknown} of ${all} ${lost}` : `${failed} of ${all} failed, ${unknown} ${lost}`
}

async function countLines(db: Database, ids: string[]): Promise<Map<string, number>> {
  const { job } = relayLines
  const sizes = await db.select({ job, count: count() }).from(relayLines).where(inArray(job, ids)).groupBy(job)
  return new Map(sizes.map((size) => [size.job, size.count]))
}

/** Counts the unresolved lines of jobs by why they failed, by job. */
async function findCauses(db: Database, ids: string[]): Promise<Map<string, Ending[]>> {
  const { job, outcome, error, unable } = relayLines
  const rows = await db
    .select({
      job,
      outcome,
      error,
      // The first channel that had too little.
      short: sql<string | null>`min(${unable}[1])`,
      count: count(),
    })
    .from(relayLines)
    .innerJoin(relayJobs, eq(relayJobs.id, job))
    .where(and(inArray(job, ids), isUnresolved))
    .groupBy(job, outcome, error)
  const endings = rows.map((row) => ({
    job: row.job,
    count: row.count,
    isUnknown: row.outcome === 'unknown',
    isTampered: row.error === 'manifest-invalid',
    ...causeOf(row),
  }))
  return Map.groupBy(endings, (ending) => ending.job)
}

function causeOf({ outcome, error, short }: { outcome: string | null; error: string | null; short: string | null }) {
  if (outcome === 'unknown') return explainLine('history-lost')
  if (short === null || error !== 'channels-short') return explainLine(error ?? '')
  const also = `For later jobs, send USDC by confidential transfer to the relay channel ${short}`
  return { meaning: 'no relay channel had enough USDC', advice: { ...explainLine('').advice, also } }
}

type Payee = Awaited<ReturnType<typeof selectPayees>>[number]

/** Finds the recipients of unresolved lines by job, with the contractors of any organisation who have the address. */
async function findPayees(db: Database, ids: string[]): Promise<Map<string, Payee[]>> {
  return Map.groupBy(await selectPayees(db, ids), ({ job }) => job)
}

function selectPayees(db: Database, ids: string[]) {
  const isContractor = and(eq(contractors.address, relayLines.recipient), isNull(contractors.deletedAt))
  const { id, name, organisation } = contractors
  return db
    .selectDistinct({ job: relayLines.job, recipient: relayLines.recipient, contractor: { id, name }, organisation })
    .from(relayLines)
    .innerJoin(relayJobs, eq(relayJobs.id, relayLines.job))
    .leftJoin(contractors, isContractor)
    .where(and(inArray(relayLines.job, ids), isUnresolved))
}

/** The first payees in words: contractors of the organisation by name, and others by address. */
function namePayees(
  payees: readonly Payee[],
  organisation: string | undefined,
): Pick<Notice, 'contractors' | 'recipients' | 'moreContractors'> {
  const own = payees.flatMap((payee) =>
    payee.contractor && payee.organisation === organisation ? { ...payee, contractor: payee.contractor } : [],
  )
  const named = new Set(own.map(({ recipient }) => recipient))
  const others = new Set(payees.flatMap(({ recipient }) => (recipient && !named.has(recipient) ? recipient : [])))
  const shown = own.slice(0, NAMES_SHOWN).map(({ contractor }) => contractor)
  const recipients = [...others].slice(0, NAMES_SHOWN - shown.length)
  return {
    contractors: shown,
    recipients,
    moreContractors: own.length + others.size - shown.length - recipients.length,
  }
}
