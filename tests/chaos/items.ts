import { asc } from 'drizzle-orm'
import { batchItems, batchJobs, relayChannels } from '#drizzle/schema/relay.ts'
import { type SyncedBalance, syncBalance } from '#lib/wallet/balance.ts'
import type { Pair, Party } from './history.ts'
import type { Standing } from './ledger-pages.ts'

/**
 * The amount of the item at a position of any job, in base units, so that the sum can be computed from the rows alone.
 */
export const amountAt = (position: number) => 100 + position

/** The balance of each payee when it was last read. */
const balances = new Map<string, SyncedBalance>()

/** All contradictions between items, channels and the ledger after a history. */
export async function findUntrueItems({ db, network, readLedger }: Pair, parties: readonly Party[]): Promise<string[]> {
  const ledger = await readLedger()
  const items = await db.select().from(batchItems).orderBy(asc(batchItems.job), asc(batchItems.position))
  const jobs = await db.select().from(batchJobs)
  const channels = await db.select().from(relayChannels)
  const untruths: string[] = []
  const standing = (hash: string | null) => ledger.get(hash ?? '')?.find(({ succeeded }) => succeeded)

  for (const { job, position, status, innerHash, hash, error } of items) {
    const name = `item ${position} of ${job}`
    const found = standing(innerHash)
    if (status === 'paid' && found?.hash !== hash)
      untruths.push(`${name} is paid by ${hash}, which does not stand there`)
    if (status === 'failed' && found) untruths.push(`${name} failed (${error}), and was paid`)
    if (status === 'unknown') untruths.push(`${name} is unknown, though the ledger has all its history`)
    if (!['paid', 'failed', 'unknown'].includes(status)) untruths.push(`${name} is ${status} for ever`)
  }
  for (const { id, status } of jobs) {
    const own = items.filter(({ job }) => job === id)
    const isPaid = own.every((item) => item.status === 'paid')
    if (status !== (isPaid ? 'completed' : 'failed')) untruths.push(`job ${id} is ${status}`)
  }
  for (const { address, itemJob, nextJob } of channels) {
    if (itemJob !== null || nextJob !== null) untruths.push(`channel ${address} is held for ever`)
  }

  // The channels' transfers in the ledger, and the amounts that the payees decrypt, must match the items.
  const own = new Set(channels.map(({ address }) => address))
  const isTransfer = ({ succeeded, source, feeSource }: Standing) =>
    succeeded && feeSource !== undefined && own.has(source)
  const paidHashes = new Set(items.flatMap((item) => (item.status === 'paid' ? [item.innerHash] : [])))
  for (const [hash, found] of ledger) {
    if (found.some(isTransfer) && !paidHashes.has(hash)) untruths.push(`${hash} of a channel paid no item`)
  }
  const direct = parties.flatMap(({ signed }) => signed).filter(({ hash }) => standing(hash))
  for (const { payee } of parties) {
    const { address } = payee
    const due =
      items.reduce(
        (sum, item) => sum + (item.status === 'paid' && item.recipient === address ? amountAt(item.position) : 0),
        0,
      ) + direct.reduce((sum, { to, amount }) => sum + (to === address ? Number(amount) : 0), 0)
    const balance = await syncBalance(network, payee, balances.get(address))
    balances.set(address, balance)
    const received = balance.receiving.value + balance.spendable.value
    if (received !== BigInt(due)) untruths.push(`${address} was paid ${received}, and not ${due}`)
  }
  return untruths
}
