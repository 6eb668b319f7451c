import { type HistoryEvent, readHistory, readPayloads } from '#lib/disclosure/history.ts'
import { RPC_SOURCE } from '#lib/disclosure/ledger-event.ts'
import { decodeEvent, decodePayment } from '#lib/disclosure/payment.ts'
import { readStatement } from '#lib/disclosure/statement.ts'
import { readConfidentialAccounts } from '#lib/wallet/account.ts'
import type { TokenArchive } from '#lib/wallet/archive.ts'
import type { Deployment } from '#lib/wallet/deployment.ts'
import { type AnyHolder, deriveDelegationKey } from '#lib/wallet/keys.ts'
import { isMarkedFor, markKeyOf } from '#lib/wallet/payment-mark.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'

/** A payment that an account has made, itself or through a channel, as the ledger's events show it. */
export interface OwnPayment {
  /** hex hash of the transaction, the outer one under a fee bump */
  transaction: string
  /** when its ledger closed, ISO 8601 */
  date: string
  /** the payee, G… or C… */
  to: string
  /** the channel that paid it from a delegation */
  spender: string | undefined
  /** Whether it is marked as the payment of this payout. */
  isFor: (payout: string) => boolean
}

/** The payments of an account in the order of the ledger. */
export interface OwnPayments {
  payments: OwnPayment[]
  /** since when none is missing, ISO 8601; undefined if since the account's registration */
  completeFrom: string | undefined
  /** the last ledger that the RPC had */
  through: number
  /** the archives that old payments were read from: they could have omitted some */
  archives: string[]
  /** Reads amounts (base units) of some of them. Those that no source has the payload of are missing. */
  readAmounts(payments: readonly OwnPayment[]): Promise<Map<OwnPayment, bigint>>
}

/** A deployment whose archives have all events of the token. */
export type DeploymentWithHistory = Deployment & { archives?: readonly TokenArchive[] }

/**
 * Reads every payment that an account has made, from the ledger and the archives alone.
 * @throws WalletError `archive-unavailable`, `history-incomplete` if every named archive has gaps; LedgerError `unavailable`
 */
export async function readOwnPayments(
  deployment: DeploymentWithHistory,
  holder: Pick<AnyHolder, 'address' | 'keys'>,
): Promise<OwnPayments> {
  const { address, keys } = holder
  const source = { ...deployment, archives: deployment.archives ?? [] }
  // Events that the archives lack: then the history begins with the RPC's.
  const { events, completeFrom, through } = await readHistory(source, address).catch((error: unknown) => {
    if (!(error instanceof WalletError && error.code === 'history-incomplete')) throw error
    return readHistory({ ...source, archives: [] }, address)
  })
  const signer = markKeyOf(keys.vk)
  const delegations = new Map<string, Uint8Array>()
  const delegationOf = (spender: string) => {
    const key = delegations.get(spender) ?? markKeyOf(deriveDelegationKey(keys.vk, spender))
    delegations.set(spender, key)
    return key
  }
  const payments = events.flatMap(({ topics, data, transaction, closedAt: date }): OwnPayment[] => {
    const payment = decodePayment(topics, data)
    if (payment?.from !== address) return []
    const { to, spender, salt } = payment
    const markKeys = spender === undefined ? { signer } : { delegation: delegationOf(spender) }
    const isFor = (payout: string) => isMarkedFor(markKeys, salt, payout, spender !== undefined)
    return [{ transaction, date, to, spender, isFor }]
  })
  const archives = [...new Set(events.map((event) => event.source))].filter((name) => name !== RPC_SOURCE)
  return {
    payments,
    completeFrom,
    through: through.ledger,
    archives,
    readAmounts: (some) => readAmounts(source, holder, events, some),
  }
}

/** A period with every event: the clocks of client and ledger may differ. */
export const EVER = { from: new Date(0).toISOString(), to: new Date(8.64e15).toISOString() }

/** Decrypts payments as the account's statement does: what a channel has paid is the difference between two rests of its escrow. */
async function readAmounts(
  deployment: DeploymentWithHistory,
  { address, keys }: Pick<AnyHolder, 'address' | 'keys'>,
  events: readonly HistoryEvent[],
  payments: readonly OwnPayment[],
): Promise<Map<OwnPayment, bigint>> {
  if (payments.length === 0) return new Map()
  const wanted = new Map(payments.map((payment) => [keyOf(payment.transaction, payment.to), payment]))
  const isWanted = (payment: ReturnType<typeof decodePayment>, { transaction }: HistoryEvent) =>
    payment?.from === address && wanted.has(keyOf(transaction, payment.to))
  /** by spender, where its last delegation begins of which something is wanted first */
  const begins = new Map<string, number>()
  const latest = new Map<string, number>()
  for (const [index, event] of events.entries()) {
    const { name, addresses } = decodeEvent(event.topics, event.data) ?? { name: '', addresses: [] }
    if (name === 'set_spender' && addresses[0] === address) latest.set(addresses[1] ?? '', index)
    const payment = decodePayment(event.topics, event.data)
    const spender = payment?.spender
    if (spender !== undefined && isWanted(payment, event) && !begins.has(spender)) {
      begins.set(spender, latest.get(spender) ?? index)
    }
  }
  const needed = events.filter((event, index) => {
    const payment = decodePayment(event.topics, event.data)
    if (payment && payment.spender === undefined) return isWanted(payment, event)
    const { addresses } = decodeEvent(event.topics, event.data) ?? { addresses: [] }
    return addresses.some((each) => index >= (begins.get(each) ?? Number.POSITIVE_INFINITY))
  })
  const payees = [...new Set(payments.filter(({ spender }) => spender === undefined).map(({ to }) => to))]
  const accounts = await readConfidentialAccounts(deployment.rpc, deployment.token, payees)
  const viewingKeys = new Map([...accounts].map(([name, { viewingKey }]) => [name, viewingKey]))
  const read = readStatement({
    address,
    keys,
    events: await readPayloads(deployment, needed),
    viewingKeys,
    period: EVER,
  })
  const sent = Map.groupBy(
    read.filter(({ direction }) => direction !== 'received'),
    ({ transaction, counterparty }) => keyOf(transaction, counterparty),
  )
  const amounts = new Map<OwnPayment, bigint>()
  for (const [key, [line, ...others]] of sent) {
    const payment = wanted.get(key)
    // Of two payments to one payee in a transaction, neither is known to be this one.
    if (payment && line?.amount !== undefined && others.length === 0) amounts.set(payment, line.amount)
  }
  return amounts
}

const keyOf = (transaction: string, to: string) => `${transaction} ${to}`
