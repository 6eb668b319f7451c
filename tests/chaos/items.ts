import { asc } from 'drizzle-orm'
import { batchItems, batchJobs, relayChannels } from '#drizzle/schema/relay.ts'
import type { TestNetwork } from '#lib/cli/client/participants.ts'
import { type SyncedBalance, syncBalance } from '#lib/wallet/balance.ts'
import { decryptTransfer } from '#lib/wallet/decryption.ts'
import { readAccountEvents } from '#lib/wallet/events.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import type { Pair, Party } from './history.ts'
import type { Standing } from './ledger-pages.ts'

/** The amounts (base units) of each job whose ID a client received. */
export const requested = new Map<string, number[]>()

let lastAmount = 100

/** An amount that no other item has. If it is received twice, an item was paid twice. */
export function nextAmount(): number {
  lastAmount += 1
  return lastAmount
}

/** The balance of each payee when it was last read. */
const balances = new Map<string, SyncedBalance>()

interface Payment {
  /** whose balance or escrow paid */
  sender: string | undefined
  amount: bigint
  /** of the fee bump */
  hash: string
}

/** All payments that each payee has decrypted. */
const received = new Map<string, Payment[]>()

/** Adds what the payee has received since the last call, and checks the sum against its balance on the ledger. */
export async function readPayments(network: TestNetwork, { address, keys }: Holder): Promise<Payment[]> {
  const { events } = await readAccountEvents(network, address, balances.get(address)?.cursor)
  const balance = await syncBalance(network, { address, keys }, balances.get(address))
  const added = events.flatMap(({ name, addresses, fields, transaction: hash }) => {
    // The spender comes first in the event of a payment from an escrow.
    const [sender, to] = name === 'spender_transfer' ? addresses.slice(1) : name === 'transfer' ? addresses : []
    const opening = to === address ? decryptTransfer(keys.vk, fields) : undefined
    return opening ? [{ sender, amount: opening.value, hash }] : []
  })
  const payments = [...(received.get(address) ?? []), ...added]
  balances.set(address, balance)
  received.set(address, payments)
  const sum = payments.reduce((total, { amount }) => total + amount, 0n)
  if (sum !== balance.receiving.value + balance.spendable.value) throw new Error(`${address} decrypts ${sum} in all`)
  return payments
}

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
    if ((status === 'failed' || status === 'skipped') && found)
      untruths.push(`${name} is ${status} (${error}), and was paid`)
    if (status === 'unknown') untruths.push(`${name} is unknown, though the ledger has all its history`)
    if (!['paid', 'failed', 'unknown', 'skipped'].includes(status)) untruths.push(`${name} is ${status} for ever`)
  }
  for (const { id, status } of jobs) {
    const own = items.filter(({ job }) => job === id)
    const isPaid = own.every((item) => item.status === 'paid' || item.status === 'skipped')
    if (status !== (isPaid ? 'completed' : 'failed')) untruths.push(`job ${id} is ${status}`)
  }
  for (const { address, itemJob, nextJob } of channels) {
    if (itemJob !== null || nextJob !== null) untruths.push(`channel ${address} is held for ever`)
  }

  // After a restore from a backup, the release of a channel records its payments, with a bid of zero.
  const transfers = await db.query.transfers.findMany()
  const released = new Set(transfers.flatMap(({ bid, applied, hash }) => (bid === 0n ? [applied, hash] : [])))

  // The channels' transfers in the ledger, and the amounts that the payees decrypt, must match the items.
  const own = new Set(channels.map(({ address }) => address))
  const isTransfer = ({ succeeded, source, feeSource }: Standing) =>
    succeeded && feeSource !== undefined && own.has(source)
  const paid = items.filter(({ status }) => status === 'paid')
  const paidHashes = new Set(paid.map(({ innerHash }) => innerHash))
  for (const [hash, found] of ledger) {
    const isKnown = paidHashes.has(hash) || released.has(hash)
    if (found.some(isTransfer) && !isKnown) untruths.push(`${hash} of a channel paid no item`)
  }
  const byHash = new Map(paid.map((item) => [item.hash, item]))
  if (byHash.size < paid.length) untruths.push(`${paid.length - byHash.size} transfers paid two items each`)
  const direct = parties.flatMap(({ signed }) => signed).filter(({ hash }) => standing(hash))
  const amounts = new Map<bigint, string>()
  const describe = (bump: string) => {
    const [found] = [...ledger.values()].flat().filter(({ hash }) => hash === bump)
    return `${bump} (${found?.source} in ledger ${found?.ledger})`
  }
  for (const { payee } of parties) {
    const { address } = payee
    const payments = await readPayments(network, payee)
    const sentDirectly = direct.reduce((sum, { to, amount }) => sum + (to === address ? amount : 0n), 0n)
    let receivedDirectly = 0n
    for (const { sender, amount, hash } of payments) {
      if (!own.has(sender ?? '')) {
        receivedDirectly += amount
        continue
      }
      const first = amounts.get(amount)
      if (first !== undefined) {
        untruths.push(`an item was paid twice: ${amount} by ${describe(first)} and ${describe(hash)}`)
      }
      amounts.set(amount, hash)
      const item = byHash.get(hash)
      if (!item) continue
      const due = requested.get(item.job)?.[item.position]
      if (item.recipient !== address) untruths.push(`${hash} paid ${address}, and not ${item.recipient}`)
      if (due !== undefined && BigInt(due) !== amount) untruths.push(`${hash} paid ${amount}, and not ${due}`)
    }
    if (receivedDirectly !== sentDirectly) {
      untruths.push(`${address} was paid ${receivedDirectly}, and not ${sentDirectly}`)
    }
  }
  return untruths
}
