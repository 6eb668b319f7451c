import { desc, eq, inArray, sql } from 'drizzle-orm'
import { z } from 'zod'
import { runApprovals } from '#drizzle/schema/approvals.ts'
import { batches, contractors } from '#drizzle/schema/directory.ts'
import { JOB_STATUSES, relayJobs } from '#drizzle/schema/relay.ts'
import type { Session } from '#lib/auth/session.ts'
import type { Database } from '#lib/db/connection.ts'
import { batchNotFound } from '#lib/directory/batches/batches.ts'
import { isId } from '#lib/directory/ids.ts'
import { actorOf, type Employer, isEmployer, provenAccounts, type User } from '#lib/directory/users.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { authOf, readAccount } from '#lib/stellar/account.ts'
import type { Network } from '#lib/stellar/network.ts'
import { plainText } from '#lib/text/plain-text.ts'
import {
  changesBetween,
  formatManifest,
  MANIFEST_CHANGES,
  type Manifest,
  type ManifestChange,
  parseManifest,
  parseSignatures,
  runMessage,
  signaturesOn,
  weightOf,
} from '#lib/wallet/manifest.ts'
import type { BatchContext } from './job.ts'
import { planRun } from './run-plan.ts'

const change = z.object({
  payoutId: z.string().optional(),
  channel: z.string().optional(),
  reason: z.enum(MANIFEST_CHANGES),
})

const voided = z
  .array(change)
  .optional()
  .meta({ description: 'why the earlier signatures are void: what has changed since; absent if they are not' })

/** What is signed of a run that has not started. */
export const approvalShape = z.object({
  weight: z.int().meta({ description: 'the sum of the weights of those who have signed' }),
  needed: z.int().meta({ description: 'the medium threshold of the account that pays, at least 1' }),
  signers: z.array(z.string()).meta({ description: 'who has signed' }),
  manifest: z.string().meta({ description: 'what was signed: see the guide to runs' }),
  void: voided,
  errors: z
    .array(z.object({ payoutId: z.string().optional(), channel: z.string().optional(), reason: z.string() }))
    .optional()
    .meta({
      description: 'what is in the way of a run that has enough signatures: send one of them again once it is gone',
    }),
})
export type Approval = z.output<typeof approvalShape>

/** What signers need to know before they sign. */
export const approvalViewShape = z.object({
  status: z.enum(['waiting', ...JOB_STATUSES]).meta({
    description: '`waiting` for signatures; else that of the newest run, whose manifest and signatures these are',
  }),
  account: z.string().meta({ description: 'the account that pays' }),
  message: z.string().meta({ description: 'what a wallet signs (SEP-53)' }),
  manifest: z.string(),
  weight: approvalShape.shape.weight,
  needed: approvalShape.shape.needed,
  signers: z
    .array(z.object({ signer: z.string(), weight: z.int(), signed: z.boolean(), signature: z.string().optional() }))
    .meta({
      description: 'the signers of the account now, as the ledger has them; the employer sees the signatures, too',
    }),
  count: z.int().meta({ description: 'how many payouts' }),
  payees: z.array(z.object({ payoutId: z.string(), contractorId: z.string(), name: z.string(), address: z.string() })),
  void: voided,
})
export type ApprovalView = z.output<typeof approvalViewShape>

/** The query of GET /batches/{id}/approval. */
export const approvalQuery = z.object({
  payer: plainText(56).optional().meta({
    description: 'the account that pays, if the organisation has several; by default that of the session',
  }),
})

/** What reading and adding approvals needs. */
export interface ApprovalContext {
  db: Database
  user: User
  session: Session
  batch: BatchContext
  network: Network
  token: string
  now: Date
}

/** The organisation of a batch, in whose name the caller acts, and the account that pays. */
export interface RunParty {
  employer: Employer
  account: string
  /** whether the caller is a signer of the account, and not the employer */
  isSigner: boolean
}

/** The account of the newest run of a batch. */
const PAID_FROM = sql<string | null>`(select run.user_sub from ${relayJobs} as run where run.batch = ${batches}.id
  order by run.created_at desc limit 1)`

/**
 * Finds the account that pays a batch, for its employer, or, once the employer has sent the first signature, for the wallet of a signer
 * of that account. A stranger learns nothing.
 * @throws Refusal `batch-not-found`, `wallet-required` for an employer without a wallet; LedgerError
 */
export async function findParty(
  { db, user, session, network }: Pick<ApprovalContext, 'db' | 'user' | 'session' | 'network'>,
  { id, payer }: { id: string; payer?: string | undefined },
): Promise<RunParty> {
  if (!isId(id)) throw batchNotFound()
  const [batch] = await db
    .select({ organisation: batches.organisation, account: runApprovals.account, paidFrom: PAID_FROM })
    .from(batches)
    .leftJoin(runApprovals, eq(runApprovals.batch, batches.id))
    .where(eq(batches.id, id))
  if (!batch) throw batchNotFound()
  const employer = { organisation: batch.organisation, actor: actorOf(user.identity) }
  if (batch.organisation === user.organisationId && isEmployer(user)) {
    const own = provenAccounts(user)
    const preferred = session.kind === 'ledger' ? session.sub : batch.account
    const account = own.find((one) => one === (payer ?? preferred)) ?? (payer === undefined ? own[0] : undefined)
    if (account === undefined) throw new Refusal('wallet-required', 'runs need a wallet of the organisation')
    return { employer, account, isSigner: false }
  }
  // Until the employer has sent the first signature, no account is known, and so no signer.
  const account = batch.account ?? batch.paidFrom
  if (session.kind !== 'ledger' || account === null || (payer ?? account) !== account) throw batchNotFound()
  const { account: entry } = await readAccount(network.server, account)
  const isSigner = entry && authOf(account, entry).signers.some(({ key }) => key === session.sub)
  if (!isSigner) throw batchNotFound()
  return { employer, account, isSigner }
}

/** How the manifest that was signed so far differs from the present one; empty if nothing was signed, or if it does not. */
export async function readVoid(db: Database, manifest: Manifest): Promise<ManifestChange[]> {
  const [kept] = await db.select().from(runApprovals).where(eq(runApprovals.batch, manifest.batch))
  const before = kept && parseManifest(kept.manifest)
  return before ? changesBetween(before, manifest) : []
}

/**
 * Reads what is to be signed for the run of a batch, or was signed for its newest one, who has signed and who can.
 * @throws Refusal `batch-not-found`, `run-not-ready`, `wallet-required`; LedgerError
 */
export async function readApproval(
  context: ApprovalContext,
  { id, payer }: z.output<typeof approvalQuery> & { id: string },
): Promise<ApprovalView> {
  const { db } = context
  const party = await findParty(context, { id, payer })
  const { manifest } = await planRun({ ...context, ...party }, id)
  if (!manifest) return await readStarted(context, party, id)
  const text = formatManifest(manifest)
  const [kept] = await db.select().from(runApprovals).where(eq(runApprovals.batch, id))
  const signatures = kept?.manifest === text ? kept.signatures : []
  const changes = await readVoid(db, manifest)
  const view = await describe(context, party, { manifest, signatures })
  return { status: 'waiting', ...view, ...(changes.length > 0 && { void: changes }) }
}

/** The newest run of a batch that has nothing left to sign. */
async function readStarted(context: ApprovalContext, party: RunParty, id: string): Promise<ApprovalView> {
  const { manifest, signature, status } = relayJobs
  const [run] = await context.db
    .select({ manifest, signature, status })
    .from(relayJobs)
    .where(eq(relayJobs.batch, id))
    .orderBy(desc(sql`${status} = 'running'`), desc(relayJobs.createdAt))
    .limit(1)
  const signed = run?.manifest ? parseManifest(run.manifest) : undefined
  if (party.isSigner && signed?.account !== party.account) throw batchNotFound()
  if (!run || !signed) throw new Refusal('run-not-ready', 'the batch has nothing to pay, and had no run')
  const view = await describe(context, party, { manifest: signed, signatures: parseSignatures(run.signature ?? '') })
  return { status: run.status, ...view }
}

async function describe(
  { db, network }: ApprovalContext,
  { isSigner }: RunParty,
  { manifest, signatures }: { manifest: Manifest; signatures: readonly string[] },
): Promise<Omit<ApprovalView, 'status'>> {
  const { account } = manifest
  const entry = (await readAccount(network.server, account)).account
  const auth = entry ? authOf(account, entry) : { signers: [], thresholds: { medium: 1 } }
  const signed = signaturesOn(manifest, signatures, auth)
  const signatureOf = new Map(signed.map(({ key, signature }) => [key, signature]))
  const ids = manifest.payouts.map(({ contractor }) => contractor)
  const named = await db
    .select({ id: contractors.id, name: contractors.name })
    .from(contractors)
    .where(inArray(contractors.id, ids))
  const names = new Map(named.map(({ id, name }) => [id, name]))
  return {
    account,
    message: runMessage(manifest),
    manifest: formatManifest(manifest),
    weight: weightOf(signed),
    needed: auth.thresholds.medium,
    signers: auth.signers.map(({ key, weight }) => {
      const signature = signatureOf.get(key)
      return { signer: key, weight, signed: signature !== undefined, ...(!isSigner && signature && { signature }) }
    }),
    count: manifest.payouts.length,
    payees: manifest.payouts.map(({ payout, contractor, address }) => {
      return { payoutId: payout, contractorId: contractor, name: names.get(contractor) ?? '', address }
    }),
  }
}
