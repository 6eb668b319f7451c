import { and, count, desc, eq, inArray, isNull, sql } from 'drizzle-orm'
import { contractors } from '#drizzle/schema/directory.ts'
import { relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { NAMES_SHOWN, type Notice, type RecordCondition } from './attention.ts'
import { askTo, describeCauses, stepAfter } from './causes.ts'
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
    const [causes, payees, sizes] = await Promise.all([findCauses(db, ids), selectPayees(db, ids), countLines(db, ids)])
    const ofJob = (id: string) => (line: { job: string }) => line.job === id
    return ({ id, batch, organisation }) => ({
      ...describeEnds(causes.filter(ofJob(id)), sizes.find(ofJob(id))?.count ?? 0, batch !== null),
      ...namePayees(payees.filter(ofJob(id)), organisation?.id),
    })
  },
}

function describeEnds(causes: readonly LineCause[], lines: number, isRun: boolean): Notice {
  const sum = (some: readonly LineCause[]) => some.reduce((total, { count }) => total + count, 0)
  const unknown = sum(causes.filter(({ outcome }) => outcome === 'unknown'))
  const all = `${lines} ${lines === 1 ? 'transfer' : 'transfers'}${isRun ? ' of its run' : ''}`
  const facts = { what: describeCounts(sum(causes) - unknown, unknown, all), why: describeCauses(causes) }
  if (causes.some(({ error }) => error === 'manifest-invalid')) return { ...facts, ...TAMPERED }
  if (unknown > 0) return { ...facts, ...UNKNOWN }
  return {
    ...facts,
    ...(isRun ? stepAfter(causes, 'run the batch again') : stepAfter(causes, ANOTHER_BATCH, { note: NO_NEW_JOB })),
  }
}

function describeCounts(failed: number, unknown: number, all: string): string {
  if (unknown === 0) return `${failed} of ${all} failed`
  const lost = `${unknown === 1 ? 'has' : 'have'} an unknown outcome`
  return failed === 0 ? `${unknown} of ${all} ${lost}` : `${failed} of ${all} failed, ${unknown} ${lost}`
}

function countLines(db: Database, ids: string[]) {
  const { job } = relayLines
  return db.select({ job, count: count() }).from(relayLines).where(inArray(job, ids)).groupBy(job)
}

/** Some unresolved lines of a job that ended for the same reason. */
type LineCause = Awaited<ReturnType<typeof findCauses>>[number]

/** Counts the unresolved lines of jobs by why they failed. */
async function findCauses(db: Database, ids: string[]) {
  const { job, outcome, error, unable } = relayLines
  // The first channel that had too little.
  const short = sql<string | null>`min(${unable}[1])`
  const rows = await db
    .select({ job, outcome, error, short, count: count() })
    .from(relayLines)
    .innerJoin(relayJobs, eq(relayJobs.id, job))
    .where(and(inArray(job, ids), isUnresolved))
    .groupBy(job, outcome, error)
  return rows.map((row) => ({ ...row, ...causeOf(row) }))
}

function causeOf({ outcome, error, short }: { outcome: string | null; error: string | null; short: string | null }) {
  if (outcome === 'unknown') return explainLine('history-lost')
  if (short === null || error !== 'channels-short') return explainLine(error ?? '')
  const also = `For later jobs, send USDC by confidential transfer to the relay channel ${short}`
  return { meaning: 'no relay channel had enough USDC', advice: { ...explainLine('').advice, also } }
}

type Payee = Awaited<ReturnType<typeof selectPayees>>[number]

/** The recipients of unresolved lines, with the contractors of any organisation who have the address. */
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
