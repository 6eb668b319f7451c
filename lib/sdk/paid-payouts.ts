import { LedgerError, WalletError } from '#lib/wallet/wallet-error.ts'
import type { BatchRequest } from './batch-request.ts'
import { type OwnPayment, type OwnPayments, readOwnPayments } from './own-payments.ts'
import type { BatchState } from './payees.ts'
import { RunError } from './run-error.ts'

type Payout = BatchState['payouts'][number]
type PaymentsRequest = Pick<
  BatchRequest,
  'deployment' | 'holder' | 'batch' | 'payees' | 'notes' | 'assumesUnpaid' | 'say'
>

/** The addresses of the payees in the list, by contractor. */
const addressesOf = ({ payees }: Pick<BatchRequest, 'payees'>) =>
  new Map(payees.map(({ contractor, address }) => [contractor, address]))

/**
 * Requires that the payouts of a batch have the ids that were noted: an earlier one may have been paid.
 * @throws RunError `list-differs`
 */
function requireNoted(request: PaymentsRequest, payouts: readonly Payout[]): void {
  const { notes, batch, assumesUnpaid } = request
  const addresses = addressesOf(request)
  const noted = notes.payouts()
  const byId = new Map(noted.map((note) => [note.payout, note]))
  const ofBatch = noted.filter((note) => note.batch === batch)
  const byAddress = new Map(ofBatch.map((note) => [note.address, note]))
  const paid = notes.paid()
  const paidByAddress = new Map(ofBatch.flatMap((note) => (paid.has(note.payout) ? [[note.address, note]] : [])))
  for (const { id, contractorId } of payouts) {
    const address = addresses.get(contractorId)
    const own = byId.get(id)
    // A payout that is paid may be of a contractor whom the list lacks.
    if (own && (own.batch !== batch || (address !== undefined && own.address !== address))) {
      throw new RunError('list-differs', `payout ${id} was one of batch ${own.batch} to ${own.address} before`)
    }
    if (own || address === undefined) continue
    // What was noted as paid stays paid, also if the employer assumes otherwise.
    const earlier = paidByAddress.get(address)
    if (earlier) {
      const transaction = paid.get(earlier.payout)
      throw new RunError(
        'list-differs',
        `the payout to ${address} was ${earlier.payout}, which transaction ${transaction} has paid: if you owe this payee more, pay it in another batch`,
      )
    }
    const before = byAddress.get(address)
    if (!before || assumesUnpaid) continue
    const change = `the payout to ${address} is ${id} now, and was ${before.payout}`
    throw new RunError('list-differs', `${change}: if you have replaced it yourself, say so (--assume-unpaid)`)
  }
}

/** Notes the payouts of a batch, once it is known which of them were paid before. @throws RunError `list-differs` */
export function notePayouts(request: PaymentsRequest, payouts: readonly Payout[]): void {
  requireNoted(request, payouts)
  const { notes, batch } = request
  const addresses = addressesOf(request)
  const known = new Set(notes.payouts().map(({ payout }) => payout))
  const at = new Date().toISOString()
  notes.addPayouts(
    payouts.flatMap(({ id: payout, contractorId }) => {
      const address = addresses.get(contractorId)
      return address === undefined || known.has(payout) ? [] : [{ batch, address, payout, at }]
    }),
  )
}

/**
 * Finds the payments by which payouts were paid, as the ledger shows them: marked with the payout, to the payee of the list, with its
 * amount where that can be read. Notes what it finds, and resolves to the transactions by payout.
 */
async function match(
  request: PaymentsRequest,
  payouts: readonly Payout[],
  history: OwnPayments,
): Promise<Map<string, string>> {
  const { payees, notes, say } = request
  const listed = new Map(payees.map((payee) => [payee.contractor, payee]))
  const byPayee = Map.groupBy(history.payments, ({ to }) => to)
  const candidates = payouts.flatMap((payout) => {
    const payee = listed.get(payout.contractorId)
    const address = payee?.address ?? payout.address
    const own =
      (address === undefined ? undefined : byPayee.get(address))?.filter(({ isFor }) => isFor(payout.id)) ?? []
    return own.map((payment) => ({ payout: payout.id, payee, payment }))
  })
  const amounts = await history.readAmounts(candidates.map(({ payment }) => payment))
  const paid = new Map<string, string>()
  for (const { payout, payee, payment } of candidates) {
    const amount = amounts.get(payment)
    if (paid.has(payout) || (payee && amount !== undefined && amount !== payee.amount)) continue
    if (payee && amount === undefined) say(`Payout ${payout}: no source shows the amount of ${payment.transaction}`)
    paid.set(payout, payment.transaction)
  }
  notes.addPaid(paid)
  return paid
}

/** What is known before a run: the transactions that have paid its payouts, and every transaction that had paid something. */
export interface PastPayments {
  /** by payout */
  paid: Map<string, string>
  transactions: ReadonlySet<string>
  /** the payouts that were looked for */
  payouts: ReadonlySet<string>
  payments: readonly OwnPayment[]
}

/**
 * Requires that payouts which the service shows only now are new: one with the id of an earlier payout may have been paid.
 * @throws RunError `list-differs`
 */
export function requireNew({ notes }: PaymentsRequest, before: PastPayments, payouts: readonly Payout[]): void {
  const paid = notes.paid()
  for (const { id } of payouts.filter((payout) => !before.payouts.has(payout.id))) {
    const transaction = paid.get(id) ?? before.payments.find(({ isFor }) => isFor(id))?.transaction
    if (transaction === undefined) continue
    throw new RunError('list-differs', `payout ${id} is not new: transaction ${transaction} has paid it`)
  }
}

/** The payouts that the ledger shows as paid: before, or since by a new transaction. @throws WalletError; LedgerError */
export async function findPaid(
  request: PaymentsRequest,
  payouts: readonly Payout[],
  before: PastPayments,
): Promise<Map<string, string>> {
  const history = await readOwnPayments(request.deployment, request.holder)
  // The service could give a new payout the id of an older one, which was paid.
  const payments = history.payments.filter(({ transaction }) => !before.transactions.has(transaction))
  const left = payouts.filter(({ id }) => !before.paid.has(id))
  return new Map([...before.paid, ...(await match(request, left, { ...history, payments }))])
}

/**
 * The payouts that the notes or the ledger show as paid, before anything is sealed, delegated or signed for the others.
 * @throws RunError `list-differs` for a payout that has replaced a paid one; `payment-unknown` if the account has paid a payee of
 *   another payout for a purpose that is not known; WalletError `history-incomplete` if its history does not reach back far enough
 *   to tell; LedgerError, `unavailable` also from a node that has not reached `throughLedger`
 */
export async function findPaidBefore(
  request: PaymentsRequest,
  payouts: readonly Payout[],
  throughLedger = 0,
): Promise<PastPayments> {
  const { deployment, holder, batch, payees, notes, assumesUnpaid, say } = request
  requireNoted(request, payouts)
  const history = await readOwnPayments(deployment, holder)
  if (history.through < throughLedger) {
    throw new LedgerError(
      'unavailable',
      `the RPC ends with ledger ${history.through}, before ledger ${throughLedger} of the balance`,
    )
  }
  const since = notes
    .payouts()
    .map(({ at }) => at)
    .toSorted()[0]
  if (!assumesUnpaid) requireHistory(history, since)
  const { archives } = history
  if (archives.length > 0) {
    say(`Older payments come from ${archives.join(' and ')}, which may omit or invent some`)
  }
  const noted = notes.paid()
  const unnoted = payouts.filter(({ id }) => !noted.has(id))
  const known = payouts.flatMap(({ id }) => (noted.has(id) ? [[id, noted.get(id) ?? ''] as const] : []))
  const paid = new Map([...known, ...(await match(request, unnoted, history))])
  const transactions = new Set([...history.payments.map(({ transaction }) => transaction), ...noted.values()])
  const dates = new Map(history.payments.map(({ transaction, date }) => [transaction, ` of ${date}`]))
  for (const [payout, transaction] of paid) {
    say(`Payout ${payout} was paid before, by transaction ${transaction}${dates.get(transaction) ?? ''}`)
  }

  const explained = new Set(notes.explained())
  const counted = new Set(paid.values())
  const unknown: OwnPayment[] = []
  const byContractor = Map.groupBy(payouts, ({ contractorId }) => contractorId)
  const notedOf = Map.groupBy(notes.payouts(), (note) => note.address)
  const byPayee = Map.groupBy(history.payments, ({ to }) => to)
  for (const { contractor, address } of payees) {
    const own = byContractor.get(contractor) ?? []
    if (own.some(({ id }) => paid.has(id))) continue
    const present = new Set(own.map(({ id }) => id))
    const ids = notedOf.get(address) ?? []
    // When this payee's payout of this batch was first noted, every payment until then had been explained.
    const checkedAt = ids.find((note) => note.batch === batch)?.at
    for (const payment of byPayee.get(address) ?? []) {
      if (counted.has(payment.transaction) || explained.has(payment.transaction)) continue
      const purpose = ids.find(({ payout }) => payment.isFor(payout))
      if (purpose && purpose.batch === batch && !present.has(purpose.payout)) {
        const change = `the payout to ${address} was ${purpose.payout}, which transaction ${payment.transaction} has paid`
        throw new RunError('list-differs', `${change}: the service has another one in its place`)
      }
      const marked = own.find(({ id }) => payment.isFor(id))
      if (marked) {
        throw new RunError(
          'list-differs',
          `transaction ${payment.transaction} of ${payment.date} has paid payout ${marked.id} with another amount than your list's: cancel the payout, and pay what is left in another batch`,
        )
      }
      const isOlder = checkedAt !== undefined && Date.parse(payment.date) < Date.parse(checkedAt)
      if (purpose === undefined && !isOlder) unknown.push(payment)
    }
  }
  if (unknown.length > 0) explain(request, unknown)
  return { paid, transactions, payouts: new Set(payouts.map(({ id }) => id)), payments: history.payments }
}

/** @throws WalletError `history-incomplete` */
function requireHistory({ completeFrom }: OwnPayments, since: string | undefined): void {
  if (completeFrom === undefined || (since !== undefined && Date.parse(completeFrom) <= Date.parse(since))) return
  const begin = since === undefined ? 'the registration of the account' : `your first note, of ${since}`
  const advice =
    'name an archive that has it (--archive), or say that nothing of the batch was paid before (--assume-unpaid)'
  throw new WalletError(
    'history-incomplete',
    `what the account has paid is known since ${completeFrom} only, and not since ${begin}: ${advice}`,
  )
}

/** Notes payments as those for something else, if the employer says so. @throws RunError `payment-unknown` */
function explain({ notes, assumesUnpaid, say }: PaymentsRequest, payments: readonly OwnPayment[]): void {
  const lines = payments.map(({ to, date, transaction }) => `${to} on ${date}, transaction ${transaction}`)
  if (!assumesUnpaid) {
    const advice = 'if these payments were for something else, say so (--assume-unpaid)'
    throw new RunError(
      'payment-unknown',
      `the account has paid payees of this batch, and it is not known what for: ${advice}\n${lines.join('\n')}`,
    )
  }
  notes.addExplained(payments.map(({ transaction }) => transaction))
  say(`Noted as payments for something else:\n${lines.join('\n')}`)
}

/**
 * Requires a payout to be unpaid before its payee is paid by a transfer, and notes it.
 * @throws RunError `already-paid`, and the errors of `findPaidBefore`
 */
export async function requireUnpaid(request: PaymentsRequest, payout: Payout, throughLedger?: number): Promise<void> {
  const { paid } = await findPaidBefore(request, [payout], throughLedger)
  const transaction = paid.get(payout.id)
  if (transaction !== undefined) {
    throw new RunError('already-paid', `payout ${payout.id} was paid by transaction ${transaction}: nothing is signed`)
  }
  notePayouts(request, [payout])
}
