import { asc, eq, isNotNull } from 'drizzle-orm'
import { relayChannels, relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import { envelopes, transfers } from '#drizzle/schema/transfers.ts'
import type { TestNetwork } from '#lib/cli/client/participants.ts'
import type { Database } from '#lib/db/connection.ts'
import type { LineId } from '#lib/transfers/line.ts'
import { type SyncedBalance, syncBalance } from '#lib/wallet/balance.ts'
import { decryptTransfer } from '#lib/wallet/decryption.ts'
import { readAccountEvents } from '#lib/wallet/events.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import type { Pair, Party } from './history.ts'
import type { Standing } from './ledger-pages.ts'

/** The amounts (base units) of each job whose ID a client received. */
export const requested = new Map<string, number[]>()

let lastAmount = 100

/** An amount that no other line has. If it is received twice, a line was paid twice. */
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

const nameOf = ({ job, position }: LineId) => `line ${position} of ${job}`

/** The inner hashes of the transactions that were signed for each line, by its name. */
async function findSigned(db: Database): Promise<Map<string, string[]>> {
  const rows = await db
    .select({ job: transfers.lineJob, position: transfers.linePosition, hash: envelopes.innerHash })
    .from(transfers)
    .innerJoin(envelopes, eq(envelopes.transfer, transfers.id))
    .where(isNotNull(transfers.lineJob))
  const signed = new Map<string, string[]>()
  for (const { job, position, hash } of rows) {
    const name = nameOf({ job: job ?? '', position: position ?? 0 })
    signed.set(name, [...(signed.get(name) ?? []), hash])
  }
  return signed
}

/** All contradictions between lines, channels and the ledger after a history. */
export async function findUntrueLines({ db, network, readLedger }: Pair, parties: readonly Party[]): Promise<string[]> {
  const ledger = await readLedger()
  const lines = await db.select().from(relayLines).orderBy(asc(relayLines.job), asc(relayLines.position))
  const jobs = await db.select().from(relayJobs)
  const channels = await db.select().from(relayChannels)
  const signed = await findSigned(db)
  const untruths: string[] = []
  const standing = (hash: string | null) => ledger.get(hash ?? '')?.find(({ succeeded }) => succeeded)
  const applied = (line: LineId) => (signed.get(nameOf(line)) ?? []).filter(standing)

  for (const line of lines) {
    const { outcome, hash, error } = line
    const name = nameOf(line)
    const found = applied(line).map((inner) => standing(inner)?.hash)
    if (outcome === 'paid' && !found.includes(hash ?? '')) {
      untruths.push(`${name} is paid by ${hash}, which does not stand there`)
    }
    if (found.length > 1) untruths.push(`${name} was paid ${found.length} times`)
    if ((outcome === 'failed' || outcome === 'canceled') && found.length > 0) {
      untruths.push(`${name} is ${outcome} (${error}), and was paid`)
    }
    if (outcome === 'unknown') untruths.push(`${name} is unknown, though the ledger has all its history`)
    if (outcome === null) untruths.push(`${name} has no outcome for ever`)
  }
  for (const { id, status, code } of jobs) {
    const own = lines.filter(({ job }) => job === id)
    const isPaid = own.every(({ outcome, error }) => outcome === 'paid' || (outcome === 'canceled' && error === null))
    if (status !== (isPaid ? 'completed' : 'failed')) untruths.push(`job ${id} is ${status}`)
    const isEnded = own.some(({ error }) => error === 'restored')
    if (isEnded !== (code === 'restored')) untruths.push(`job ${id} has the code ${code}`)
  }

  // The payments that relays find after a restore from a backup are recorded with a bid of zero.
  const recorded = await db.query.transfers.findMany()
  const foundLater = new Set(recorded.flatMap(({ bid, applied, hash }) => (bid === 0n ? [applied, hash] : [])))

  // The channels' transfers in the ledger, and the amounts that the payees decrypt, must match the lines.
  const own = new Set(channels.map(({ address }) => address))
  const isTransfer = ({ succeeded, source, feeSource }: Standing) =>
    succeeded && feeSource !== undefined && own.has(source)
  const paid = lines.filter(({ outcome }) => outcome === 'paid')
  const paidHashes = new Set(paid.flatMap(applied))
  for (const [hash, found] of ledger) {
    const isKnown = paidHashes.has(hash) || foundLater.has(hash)
    if (found.some(isTransfer) && !isKnown) untruths.push(`${hash} of a channel paid no line`)
  }
  const byHash = new Map(paid.map((line) => [line.hash, line]))
  if (byHash.size < paid.length) untruths.push(`${paid.length - byHash.size} transfers paid two lines each`)
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
        untruths.push(`a line was paid twice: ${amount} by ${describe(first)} and ${describe(hash)}`)
      }
      amounts.set(amount, hash)
      const line = byHash.get(hash)
      if (!line) continue
      const due = requested.get(line.job)?.[line.position]
      if (line.recipient !== address) untruths.push(`${hash} paid ${address}, and not ${line.recipient}`)
      if (due !== undefined && BigInt(due) !== amount) untruths.push(`${hash} paid ${amount}, and not ${due}`)
    }
    if (receivedDirectly !== sentDirectly) {
      untruths.push(`${address} was paid ${receivedDirectly}, and not ${sentDirectly}`)
    }
  }
  return untruths
}
