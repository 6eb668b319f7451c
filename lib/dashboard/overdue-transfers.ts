import { and, asc, eq, inArray, isNull, lt, ne, or, sql } from 'drizzle-orm'
import { batches, contractors, organisations, payouts } from '#drizzle/schema/directory.ts'
import type { TransferKind, TransferStatus } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { ACKNOWLEDGEMENT, acknowledgementRows, acknowledges, isUnacknowledged } from './acknowledgements.ts'
import { type Attention, MAX_LISTED, NAMES_SHOWN } from './attention.ts'
import { CONDITIONS } from './conditions.ts'
import { transferLimit, WHY_OVERDUE } from './lateness.ts'
import { refusalCode, TRANSFER_PHRASES, TRANSFER_VIEWS, transferRows } from './transfer-rows.ts'
import { findUsersOf } from './users.ts'

/** The service does not know whether the payout was paid, so it never pays again. Only the employer can cancel it. */
function describeUnknown(payee: string) {
  return {
    ...CONDITIONS.outcomeUnknown.notice,
    what: `unknown whether ${payee} was paid`,
    why: 'the RPC’s history begins after the transfer, so the payout stays pending',
    asksToPay: true,
    remedy: 'Ask the employer to check with the contractor whether the payment arrived.',
    request: `Please check with ${payee} whether this payment arrived. The service will not pay it again: cancel the payout, and create a new one only for what did not arrive.`,
  } as const
}

const isPayment = (kind: TransferKind) => kind === 'transfer' || kind === 'delegated' || kind === 'deposit'

function describeOverdue(kind: TransferKind, payee: string, resultCode: string | null) {
  const response = resultCode === null ? '' : `the network’s last response was ${resultCode}; `
  return {
    ...CONDITIONS.transferOverdue.notice,
    what: `${TRANSFER_PHRASES[kind]} ${payee} open`,
    isOngoing: true,
    why: `${response}${WHY_OVERDUE}`,
    remedy: `Look it up now: the service asks the RPC for its outcome${isPayment(kind) ? ', and never pays it twice' : ''}. While it stays open, the RPC lacks that ledger: docs/operate.md, “PayrollTransferOpen”.`,
  } as const
}

/**
 * Lists the transfers that have been undecided for longer than an envelope can be valid, oldest first.
 * @param only the transfer, or the batch, to report on alone, acknowledged or not
 */
export async function listOverdueTransfers(
  db: Database,
  now: Date,
  only?: { batch: string } | { transfer: string },
): Promise<Attention[]> {
  const isUnknown = eq(transferRows.status, 'unknown')
  const lastEvent = sql`coalesce(${transferRows.settledAt}, ${transferRows.createdAt})`
  const id = transferRows.id
  const rows = await db
    .select({
      id,
      kind: transferRows.kind,
      status: transferRows.status,
      // The relay's channel sends it, and its quota account is the user.
      account: sql<string>`coalesce(${transferRows.quotaAccount}, ${transferRows.account})`,
      createdAt: transferRows.createdAt,
      lastEvent: lastEvent.mapWith(transferRows.createdAt),
      resultCode: refusalCode,
      recipient: transferRows.recipient,
      organisation: organisations.id,
      organisationName: organisations.name,
      batch: batches.id,
      batchName: batches.name,
      contractor: contractors.id,
      contractorName: contractors.name,
      acknowledgement: ACKNOWLEDGEMENT,
    })
    .from(transferRows)
    .leftJoin(organisations, eq(organisations.id, transferRows.organisation))
    .leftJoin(payouts, eq(payouts.id, transferRows.payout))
    .leftJoin(batches, eq(batches.id, payouts.batch))
    .leftJoin(contractors, eq(contractors.id, payouts.contractor))
    .leftJoin(
      acknowledgementRows,
      or(
        and(isUnknown, acknowledges('outcomeUnknown', id, lastEvent)),
        and(eq(transferRows.status, 'open'), acknowledges('transferOverdue', id, lastEvent)),
      ),
    )
    .where(
      and(
        inArray(transferRows.status, [...TRANSFER_VIEWS.open, 'unknown']),
        or(ne(transferRows.status, 'unknown'), eq(payouts.status, 'pending')),
        lt(transferRows.createdAt, transferLimit(now)),
        only === undefined ? isUnacknowledged : 'batch' in only ? eq(batches.id, only.batch) : eq(id, only.transfer),
      ),
    )
    .orderBy(asc(transferRows.createdAt))
    .limit(MAX_LISTED)
  const callers = rows.filter(({ organisation }) => organisation === null).map(({ account }) => ({ sub: account }))
  const [users, payees] = await Promise.all([
    findUsersOf(db, callers),
    findContractorsAt(
      db,
      rows.filter(({ contractor }) => contractor === null).map(({ recipient }) => recipient),
    ),
  ])
  return rows.map((row) => ({
    key: `open ${row.id}`,
    since: row.createdAt,
    actor: 'operator',
    ...describeUndecided(row),
    ...(row.organisation
      ? { organisation: { id: row.organisation, name: row.organisationName ?? '' } }
      : users({ kind: 'ledger', sub: row.account })),
    ...(row.batch && { batch: { id: row.batch, name: row.batchName ?? '' } }),
    contractors: row.contractor
      ? [{ id: row.contractor, name: row.contractorName ?? '' }]
      : (payees.get(row.recipient) ?? []).slice(0, NAMES_SHOWN),
    acknowledgeable: {
      condition: row.status === 'unknown' ? 'outcomeUnknown' : 'transferOverdue',
      subject: row.id,
      lastEvent: row.lastEvent,
    },
    acknowledgement: row.acknowledgement,
    page: `/transfers/${row.id}`,
  }))
}

const describeUndecided = (row: {
  kind: TransferKind
  status: TransferStatus
  resultCode: string | null
  contractorName: string | null
  recipient: string
}) => {
  const payee = row.contractorName ?? `${row.recipient.slice(0, 4)}…${row.recipient.slice(-4)}`
  return row.status === 'unknown' ? describeUnknown(payee) : describeOverdue(row.kind, payee, row.resultCode)
}

/** Finds the contractors of any organisation with these addresses, by address. */
async function findContractorsAt(db: Database, addresses: readonly string[]) {
  if (addresses.length === 0) return new Map<string, never>()
  const { address, id, name, deletedAt } = contractors
  const rows = await db
    .select({ address, id, name })
    .from(contractors)
    .where(and(inArray(address, [...addresses]), isNull(deletedAt)))
    .orderBy(name, id)
  return Map.groupBy(rows, (row) => row.address ?? '')
}
