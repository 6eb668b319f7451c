import type { batches, identities, organisations, PayoutStatus, payouts } from '#drizzle/schema/directory.ts'
import type { relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import type { transfers } from '#drizzle/schema/transfers.ts'
import type { AuditEntry } from '#lib/db/audit-log.ts'
import { describeLineError } from '#lib/transfers/line-error.ts'
import type { SeededInvite } from './invites.ts'
import { type Contractor, type Employer, makeOrganisation } from './organisations.ts'
import { batchRow, itemRow, jobRow, payoutRow, transferRow } from './rows.ts'
import type { Seeding } from './source.ts'
import { ORGANISATIONS, planBatches, REASONS, type StoryBatch } from './story.ts'

const MINUTE_MS = 60_000

/** The network's usual charge for a confidential transfer, in stroops. */
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
  jobs: [] as (typeof relayJobs.$inferInsert)[],
  items: [] as (typeof relayLines.$inferInsert)[],
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
  const [recordedAt, endedAt] = [new Date(began - 5 * MINUTE_MS), new Date(began + statuses.length * 6_000)]
  const isStarted = status !== 'draft' && status !== 'ready'
  const count = (wanted: PayoutStatus) => statuses.filter((one) => one === wanted).length
  const batch = batchRow({
    id,
    organisation,
    name,
    status,
    payoutCount: statuses.length - count('canceled'),
    settledCount: count('paid'),
    failedCount: count('failed'),
    createdAt: recordedAt,
    startedAt: isStarted ? new Date(began) : null,
    completedAt: status === 'completed' ? endedAt : null,
  })
  records.batches.push(batch)
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
    records.payouts.push(
      payoutRow({
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
      }),
    )
    if (payoutStatus === 'paid') payee.lastPaidAt = settledAt
    if (outcome) batch.progressedAt = outcome === 'open' ? createdAt : settledAt
    if (payoutStatus === 'failed') batch.failedAt = settledAt
  }
  const addEntry = (at: Date, action: AuditEntry['action']) => {
    records.diary.push({ at, entry: { organisation, actor: employer.actor, action, subject: id } })
  }
  for (const action of ['batch.created', 'batch.instructed'] as const) addEntry(recordedAt, action)
  if (status !== 'draft') addEntry(recordedAt, 'batch.locked')
  if (isStarted) addEntry(new Date(began), 'batch.started')
  if (status === 'completed' || status === 'failed') addEntry(endedAt, `batch.${status}`)
}

/** Adds a transfer. `insertRecords` sets its sequence number and ledger. */
function addTransfer(
  records: Records,
  { source, sponsor }: Seeding,
  fields: Pick<SeededTransfer, 'account' | 'recipient' | 'organisation' | 'payout' | 'quotaAccount' | 'createdAt'> & {
    outcome: 'succeeded' | 'failed' | 'open'
    settledAt: Date
  },
): SeededTransfer {
  const { outcome, settledAt, ...of } = fields
  const [innerHash, outerHash] = [source.hash(), source.hash()]
  const isOpen = outcome === 'open'
  const hasFailed = outcome === 'failed'
  const row = transferRow({
    ...of,
    id: source.uuid(),
    sponsor,
    bid: BID,
    status: outcome,
    resultCode: isOpen ? null : hasFailed ? 'txFailed' : 'txSuccess',
    contractError: hasFailed ? 3506 : null,
    hash: isOpen ? null : outerHash,
    applied: isOpen ? null : innerHash,
    feeCharged: isOpen ? null : FEE + BigInt(source.number(9_000)),
    settledAt: isOpen ? null : settledAt,
  })
  const transfer = { ...row, innerHash, outerHash }
  records.transfers.push(transfer)
  return transfer
}

/** A relay job that ended `hours` ago. An item of today's job failed. */
function addJob(records: Records, seeding: Seeding, { account, id: organisation, payees }: Employer, hours: number) {
  const { source, channels, now } = seeding
  const createdAt = new Date(now.getTime() - hours * 3_600_000)
  const failed = hours < 24 ? 1 : -1
  const [job, error] = [source.uuid(), 'channels-short'] as const
  const endedAt = new Date(createdAt.getTime() + 21_000)
  const outcome =
    failed < 0
      ? ({ status: 'completed' } as const)
      : ({ status: 'failed', error: `transfer ${failed}: ${describeLineError(error)}` } as const)
  records.jobs.push(
    jobRow({ id: job, userKind: 'ledger', userSub: account, relayKey: 'seed', ...outcome, createdAt, endedAt }),
  )
  for (let position = 0; position < 4; position += 1) {
    const channel = source.address()
    const recipient = payees[position]?.address ?? channel
    const settledAt = new Date(createdAt.getTime() + (position + 1) * 5_000)
    const sentAt = new Date(settledAt.getTime() - 3_000)
    const moved = { account: channel, recipient, organisation, quotaAccount: account, createdAt: sentAt, settledAt }
    const item = { job, position, recipient, quotaAccount: account, queuedAt: createdAt, settledAt }
    if (position === failed) records.items.push(itemRow({ ...item, outcome: 'failed', error, unable: [...channels] }))
    else {
      const line = { lineJob: job, linePosition: position }
      const { hash } = addTransfer(records, seeding, { ...moved, ...line, outcome: 'succeeded' })
      records.items.push(itemRow({ ...item, outcome: 'paid', channel, hash, sentAt }))
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
