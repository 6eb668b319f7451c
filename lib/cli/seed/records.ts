import type { batches, identities, organisations, PayoutStatus, payouts } from '#drizzle/schema/directory.ts'
import type { batchItems, batchJobs } from '#drizzle/schema/relay.ts'
import type { transfers } from '#drizzle/schema/transfers.ts'
import type { AuditEntry } from '#lib/db/audit-log.ts'
import type { SeededInvite } from './invites.ts'
import { type Contractor, type Employer, makeOrganisation } from './organisations.ts'
import type { Seeding } from './source.ts'
import { ORGANISATIONS, planBatches, REASONS, type StoryBatch } from './story.ts'

const MINUTE_MS = 60_000

/** The usual charge of the network for a confidential transfer, in stroops. */
const FEE = 229_000n
export const BID = 2n * FEE + 200n

export type SeededTransfer = typeof transfers.$inferInsert & { createdAt: Date; innerHash: string; outerHash: string }

/** The rows of every table, and the entries of the audit log with their times. */
const emptyRecords = () => ({
  organisations: [] as (typeof organisations.$inferInsert)[],
  identities: [] as (typeof identities.$inferInsert)[],
  contractors: [] as Contractor[],
  invites: [] as SeededInvite[],
  batches: [] as (typeof batches.$inferInsert)[],
  payouts: [] as (typeof payouts.$inferInsert)[],
  jobs: [] as (typeof batchJobs.$inferInsert)[],
  items: [] as (typeof batchItems.$inferInsert)[],
  transfers: [] as SeededTransfer[],
  diary: [] as { at: Date; entry: AuditEntry }[],
})
export type Records = ReturnType<typeof emptyRecords>

/** Makes all records, in memory. */
export function composeRecords(seeding: Seeding): Records {
  const { source, more } = seeding
  const records = emptyRecords()
  const employers = ORGANISATIONS.map((story, index) => {
    const { employer, organisation, users, people, invites } = makeOrganisation(seeding, { ...story, index })
    records.organisations.push(organisation)
    records.identities.push(...users)
    records.contractors.push(...people)
    records.invites.push(...invites)
    return employer
  })
  for (const batch of planBatches(source, more)) {
    const employer = employers[batch.organisation]
    if (employer) addBatch(records, seeding, employer, batch)
  }
  const [, relayed] = employers
  if (relayed) for (const hours of [2, 27, 51]) addJob(records, seeding, relayed, hours)
  addRefusals(records, seeding, employers)
  records.transfers.sort((one, other) => one.createdAt.getTime() - other.createdAt.getTime())
  return records
}

const OUTCOMES = { paid: 'succeeded', failed: 'failed', pending: 'open' } as const

function addBatch(records: Records, seeding: Seeding, employer: Employer, story: StoryBatch): void {
  const { source, now } = seeding
  const { name, status, minutes, payouts: statuses } = story
  const [id, organisation] = [source.uuid(), employer.id]
  const began = now.getTime() - minutes * MINUTE_MS
  const [made, ended] = [new Date(began - 5 * MINUTE_MS), new Date(began + statuses.length * 6_000)]
  const isStarted = status !== 'draft' && status !== 'ready'
  const count = (wanted: PayoutStatus) => statuses.filter((one) => one === wanted).length
  records.batches.push({
    id,
    organisation,
    name,
    status,
    payoutCount: statuses.length - count('canceled'),
    settledCount: count('paid'),
    failedCount: count('failed'),
    createdAt: made,
    startedAt: isStarted ? new Date(began) : null,
    completedAt: status === 'completed' ? ended : null,
  })
  for (const [index, payoutStatus] of statuses.entries()) {
    const payee = employer.payees[index % employer.payees.length]
    if (!payee) continue
    const payout = source.uuid()
    const createdAt = new Date(began + index * 6_000)
    const settledAt = new Date(createdAt.getTime() + 1_500 + source.number(4_500))
    const outcome = payoutStatus in OUTCOMES ? OUTCOMES[payoutStatus as keyof typeof OUTCOMES] : undefined
    const moved = {
      account: employer.account,
      recipient: payee.address ?? '',
      organisation,
      payout,
      createdAt,
      settledAt,
    }
    const transfer = outcome && addTransfer(records, seeding, { ...moved, outcome })
    records.payouts.push({
      id: payout,
      organisation,
      batch: id,
      contractor: payee.id,
      status: payoutStatus,
      address: payee.address,
      encryptedAmount: 'sealed by the seed',
      transfer: transfer?.id,
      txHash: payoutStatus === 'paid' ? transfer?.hash : null,
      error: payoutStatus === 'failed' ? 'transfer failed on the ledger: contract error 3506' : null,
      createdAt: new Date(began - 4 * MINUTE_MS),
      paidAt: payoutStatus === 'paid' ? settledAt : null,
    })
    if (payoutStatus === 'paid') payee.lastPaidAt = settledAt
  }
  const tell = (at: Date, action: AuditEntry['action']) => {
    const actor = { kind: 'ledger' as const, sub: employer.account }
    records.diary.push({ at, entry: { organisation, actor, action, subject: id } })
  }
  for (const action of ['batch.created', 'batch.instructed'] as const) tell(made, action)
  if (status !== 'draft') tell(made, 'batch.locked')
  if (isStarted) tell(new Date(began), 'batch.started')
  if (status === 'completed' || status === 'failed') tell(ended, `batch.${status}`)
}

/** The row of a transfer. `insertRecords` sets its sequence number and its ledger, by its place among all. */
function addTransfer(
  records: Records,
  { source, sponsor }: Seeding,
  given: Pick<SeededTransfer, 'account' | 'recipient' | 'organisation' | 'payout' | 'quotaAccount' | 'createdAt'> & {
    outcome: 'succeeded' | 'failed' | 'open'
    settledAt: Date
  },
): SeededTransfer {
  const { outcome, settledAt, ...of } = given
  const [innerHash, outerHash] = [source.hash(), source.hash()]
  const isOpen = outcome === 'open'
  const hasFailed = outcome === 'failed'
  const transfer = {
    ...of,
    id: source.uuid(),
    innerHash,
    outerHash,
    sponsor,
    sequenceNumber: 0n,
    bid: BID,
    quotaDay: of.createdAt.toISOString().slice(0, 10),
    recordedLedger: 1,
    status: outcome,
    resultCode: isOpen ? null : hasFailed ? 'txFailed' : 'txSuccess',
    contractError: hasFailed ? 3506 : null,
    hash: isOpen ? null : outerHash,
    applied: isOpen ? null : innerHash,
    feeCharged: isOpen ? null : FEE + BigInt(source.number(9_000)),
    settledAt: isOpen ? null : settledAt,
  }
  records.transfers.push(transfer)
  return transfer
}

/** A job of the relay that has ended `hours` ago. Yesterday's has paid what the one before it left unpaid. */
function addJob(records: Records, seeding: Seeding, { account, id: organisation, payees }: Employer, hours: number) {
  const { source, channels, now } = seeding
  const createdAt = new Date(now.getTime() - hours * 3_600_000)
  const failed = hours === 27 ? -1 : 1
  const [job, error] = [source.uuid(), 'no channel has enough to pay it']
  records.jobs.push({
    id: job,
    userKind: 'ledger',
    userSub: account,
    relayKey: 'seed',
    status: failed < 0 ? 'completed' : 'failed',
    error: failed < 0 ? null : `transfer ${failed}: ${error}`,
    createdAt,
    endedAt: new Date(createdAt.getTime() + 21_000),
  })
  for (let position = 0; position < 4; position += 1) {
    const channel = source.address()
    const recipient = payees[position]?.address ?? channel
    const settledAt = new Date(createdAt.getTime() + (position + 1) * 5_000)
    const sentAt = new Date(settledAt.getTime() - 3_000)
    const moved = { account: channel, recipient, organisation, quotaAccount: account, createdAt: sentAt, settledAt }
    const item = { job, position, recipient, quotaAccount: account, attempt: 1, queuedAt: createdAt, settledAt }
    if (position === failed) records.items.push({ ...item, status: 'failed', error, unable: [...channels] })
    else {
      const { innerHash, hash } = addTransfer(records, seeding, { ...moved, outcome: 'succeeded' })
      records.items.push({ ...item, status: 'paid', channel, innerHash, hash, sentAt })
    }
  }
}

/** Adds the sponsor's refusals of the last days. */
function addRefusals({ diary }: Records, { source, now }: Seeding, employers: readonly Employer[]): void {
  for (const [index, reason] of REASONS.entries()) {
    const { id: organisation, account = '' } = employers[index % employers.length] ?? {}
    const at = new Date(now.getTime() - (REASONS.length - index) * 5 * 3_600_000)
    const actor = { kind: 'ledger', sub: account } as const
    const subject = source.hash()
    diary.push({ at, entry: { organisation, actor, action: 'transfer.refused', subject, detail: { reason } } })
  }
}
