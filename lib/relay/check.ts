import { and, eq, gt, inArray, sql } from 'drizzle-orm'
import { type ChannelProblem, relayLines } from '#drizzle/schema/relay.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import { log } from '#lib/observability/log.ts'
import type { ReadAccount } from '#lib/stellar/account.ts'
import { FROZEN_ERRORS, STALE_PROOF } from '#lib/stellar/confidential-token.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { contractErrorCode, describeLineError, type LineErrorCode } from '#lib/transfers/line-error.ts'
import { readConfidentialAccount, readConfidentialAccounts } from '#lib/wallet/account.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'
import { isConflict, opensBalance, readBalance } from './balance.ts'
import { type ChannelRecord, findChannels, RUN_PROBLEMS, recordProblem } from './channel-state.ts'
import { isLineError, LineError } from './line-error.ts'
import type { Channel, Relay } from './relay.ts'

/** The highest sequence number: an account that has reached it can sign nothing more. */
const LAST_SEQUENCE = 2n ** 63n - 1n

/** A token on a network, to read accounts from. */
type Source = Pick<Relay, 'network' | 'token'>

/** Each account's problem, apart from its balance; undefined if it has none. Two RPC calls check 200 together. @throws LedgerError */
async function diagnoseAll(
  { network, token }: Source,
  addresses: readonly string[],
  readAccount: ReadAccount,
): Promise<(ChannelProblem | undefined)[]> {
  const [readings, registered] = await Promise.all([
    Promise.all(addresses.map(readAccount)),
    readConfidentialAccounts(network.server, token, addresses),
  ])
  return readings.map(({ account }, index) => {
    if (!account) return 'account'
    if (account.seqNum >= LAST_SEQUENCE) return 'sequence'
    return registered.has(addresses[index] ?? '') ? undefined : 'registration'
  })
}

/** The problem that keeps one account from paying, apart from its balance. @throws LedgerError */
export async function diagnose(
  relay: Source & { sponsor: { tracker: { readAccount: ReadAccount } } },
  address: string,
): Promise<ChannelProblem | undefined> {
  return (await diagnoseAll(relay, [address], relay.sponsor.tracker.readAccount))[0]
}

/** Whether an address (G… or C…) is registered with the token, and so can be paid. @throws LedgerError */
export async function isRegistered({ network, token }: Source, address: string): Promise<boolean> {
  return (await readConfidentialAccount(network.server, token, address)) !== undefined
}

/** Compares the relay's channels with the ledger, records or clears their problems, and reads the balances of free ones in time. */
export async function checkChannels(relay: Relay): Promise<void> {
  const { token, channels, memory, signal } = relay
  const rows = await findChannels(await relay.database(), token)
  const records = new Map(rows.map((record) => [record.address, record]))
  const busy = await findBusyChannels(relay)
  const addresses = channels.map(({ address }) => address)
  const problems = await diagnoseAll(relay, addresses, memory.readAccount)
  const failures: unknown[] = []
  for (const [index, channel] of channels.entries()) {
    if (signal.aborted) return
    const { address } = channel
    const [problem, record] = [problems[index], records.get(address)]
    if (record?.retired) continue
    const check = async () => {
      const isDue = record && !busy.has(address) && isBalanceDue(relay, record)
      if (problem || !record) await recordProblem(relay, address, problem ?? null)
      else if (isDue) await recordProblem(relay, address, await readProblem(relay, channel, record))
      else if (!RUN_PROBLEMS.some((each) => each === record.problem)) await recordProblem(relay, address, null)
    }
    // One channel that cannot be read must not keep the others from being checked.
    await check().catch((error: unknown) => failures.push(error))
  }
  if (failures.length > 0) throw failures[0]
}

/** The channels of this relay whose balance a payment is about to change: they have an open transfer, or lease a line. */
async function findBusyChannels({ database, channels }: Relay): Promise<Set<string | null>> {
  const db = await database()
  const own = channels.map(({ address }) => address)
  const isOpen = and(inArray(transfers.account, own), eq(transfers.status, 'open'))
  const open = await db.select({ address: transfers.account }).from(transfers).where(isOpen)
  const isLeased = and(inArray(relayLines.channel, own), gt(relayLines.leasedUntil, sql`clock_timestamp()`))
  const leased = await db.select({ address: relayLines.channel }).from(relayLines).where(isLeased)
  return new Set([...open, ...leased].map(({ address }) => address))
}

/** Whether it is time to read a channel's events, the only source of its balance. */
function isBalanceDue({ times, now }: Relay, { problem, readAt }: ChannelRecord): boolean {
  return problem !== null || readAt === null || readAt.getTime() + times.refresh * 1000 <= now().getTime()
}

/** The problem of a channel's balance, which is read. */
async function readProblem(relay: Relay, channel: Channel, record: ChannelRecord): Promise<ChannelProblem | null> {
  const balance = await readBalance(relay, channel).catch((error: unknown) => {
    if (isConflict(error)) return undefined
    throw error
  })
  // Without events the channel can still pay, as long as the stored opening fits the balance on the ledger.
  if (!balance) return (await opensBalance(relay, channel, record)) ? null : 'history'
  return balance.spendable.value + balance.receiving.value === 0n ? 'balance' : null
}

/** The contract's errors for a payment from an escrow (interface 0.8.0). */
const DELEGATION_ERRORS: Record<number, LineErrorCode> = {
  3501: 'recipient-unregistered',
  3504: 'delegation-revoked',
  3505: 'delegation-ended',
  ...Object.fromEntries(FROZEN_ERRORS.map((number) => [number, 'account-frozen' as const])),
}

/**
 * The reason why no transfer could be made: a problem of the channel, or of the line. Any other error is kept.
 * @param given.to the payee of a payment from the channel's own balance; undefined if it is paid from an escrow
 */
export async function explain(relay: Relay, { channel, to }: { channel: string; to?: string }, error: unknown) {
  // The merge failed, usually because the channel has no XLM for the fee. Other channels may be able to pay.
  const isMergeLost = isLineError(error, 'call-failed')
  if (error instanceof LineError && !isMergeLost) return error
  if (error instanceof LedgerError && error.code === 'unavailable') return error
  const problem = await diagnose(relay, channel)
  if (problem) return new LineError('channel-unfit', `the channel lacks: ${problem}`, { problem })
  if (to !== undefined && !(await isRegistered(relay, to))) return doubtful('recipient-unregistered', error)
  if (to !== undefined && isConflict(error)) return stale('the balance has changed', error)
  if (isMergeLost) return new LineError('balance-short', 'the merge failed', { cause: error })
  if (!(error instanceof WalletError)) return error
  const { code, contractError } = error
  // The balance or escrow changed between reading and simulating, or the node that simulates lags behind.
  if (contractError === STALE_PROOF) return stale('the proof is stale', error)
  const isShort = to !== undefined && code === 'balance-too-low'
  if (isShort) return new LineError('balance-short', 'the channel has too little', { cause: error })
  log('info', 'line cannot be paid', { channel, code, contractError })
  if (code === 'fee-too-high') return doubtful('resource-fee-cap', error)
  if (contractError === undefined) return doubtful('would-fail', error)
  const ofDelegation = to === undefined ? DELEGATION_ERRORS[contractError] : undefined
  return doubtful(ofDelegation ?? contractErrorCode(contractError), error)
}

const stale = (message: string, cause: unknown) => new LineError('balance-stale', message, { cause })

const doubtful = (code: LineErrorCode, cause: unknown) =>
  new LineError(code, describeLineError(code), { cause, isDoubtful: true })
