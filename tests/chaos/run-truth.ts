import { inArray } from 'drizzle-orm'
import { payouts } from '#drizzle/schema/directory.ts'
import type { TestNetwork } from '#lib/cli/client/participants.ts'
import type { Database } from '#lib/db/connection.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { readOwnDelegations } from '#lib/wallet/escrow.ts'
import { readAccountEvents } from '#lib/wallet/events.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import type { Pair } from './history.ts'
import { readPayments } from './lines.ts'
import { due, givenUp, type RunEmployer, type Runs } from './runs.ts'

interface Payment {
  amount: bigint
  from: string | undefined
  to: string
  /** of the fee bump */
  hash: string
}

/**
 * All contradictions between payouts, escrows and the ledger after a history.
 * @param payees everyone the employers of runs may pay
 */
export async function findUntrueRuns(
  { db, network, readLedger }: Pair,
  { employers, channels }: Runs,
  payees: readonly Holder[],
): Promise<string[]> {
  const untruths: string[] = []
  const payments: Payment[] = []
  for (const payee of payees) {
    const received = await readPayments(network, payee)
    payments.push(...received.map(({ sender: from, ...payment }) => ({ ...payment, from, to: payee.address })))
  }

  const ledgers = new Map([...(await readLedger()).values()].flat().map(({ hash, ledger }) => [hash, ledger]))
  const paid = new Map<bigint, Payment>()
  for (const payment of payments) {
    const { amount, from, to, hash } = payment
    const owed = due.get(amount)
    if (owed?.owner !== from || owed?.address !== to)
      untruths.push(`${hash} paid ${to}, which is in no batch of ${from}`)
    const first = paid.get(amount)
    if (first) {
      const both = [first.hash, hash].map((each) => `${each} (ledger ${ledgers.get(each)})`).join(' and ')
      untruths.push(`contractor ${owed?.contractor} was paid twice in batch ${owed?.batch}: by ${both}`)
    }
    paid.set(amount, payment)
  }

  const batches = [...new Set([...due.values()].map(({ batch }) => batch))]
  const rows = await db.select().from(payouts).where(inArray(payouts.batch, batches))
  for (const { id, batch, contractor, status, txHash, error } of rows) {
    const [amount] = [...due].find(([, each]) => each.batch === batch && each.contractor === contractor) ?? []
    const payment = amount === undefined ? undefined : paid.get(amount)
    const name = `payout ${id} (${status}${error === null ? '' : `, ${error}`})`
    if (status === 'pending') untruths.push(`${name} is pending for ever`)
    if (status === 'paid' && payment?.hash !== txHash) {
      untruths.push(`${name} is paid by ${txHash}, and not by ${payment?.hash}`)
    }
    if (status !== 'paid' && payment && !givenUp.has(id)) {
      untruths.push(`${name} was paid by ${await describePayment(db, payment, ledgers.get(payment.hash))}`)
    }
  }

  const isPayee = new Set([...due.values()].map(({ owner, address }) => `${owner} ${address}`))
  for (const channel of channels) {
    const { events } = await readAccountEvents(network, channel)
    for (const { name, addresses, transaction } of events) {
      const [spender, from, to] = addresses
      if (name !== 'spender_transfer' || spender !== channel || isPayee.has(`${from} ${to}`)) continue
      untruths.push(`${transaction} of ${channel} paid ${to}, which is in no batch of ${from}`)
    }
  }
  for (const employer of employers) untruths.push(...(await findMissing(network, employer, channels, payments)))
  return untruths
}

/** How the database has recorded a payment that it shows for no payout, which explains the contradiction. */
async function describePayment(db: Database, { hash }: Payment, ledger: number | undefined): Promise<string> {
  const recorded = await db.query.transfers.findMany({ where: (row, { eq }) => eq(row.hash, hash) })
  const rows = recorded.map(({ kind, status, payout, createdAt }) => {
    return `${kind} transfer of ${createdAt.toISOString()}, ${status}, for ${payout ?? 'no payout'}`
  })
  return `${hash} (ledger ${ledger}; ${rows.join(' and ') || 'not recorded'})`
}

/** An employer's funds must be in its balance, in an escrow, or paid. No escrow can have paid more than it had. */
async function findMissing(
  network: TestNetwork,
  { payer }: RunEmployer,
  channels: readonly string[],
  payments: readonly Payment[],
): Promise<string[]> {
  const { address } = payer
  const { events } = await readAccountEvents(network, address)
  const deposits = events.flatMap(({ name, fields: { amount } }) =>
    name === 'deposit' && typeof amount === 'bigint' ? [amount] : [],
  )
  const { spendable, receiving } = await syncBalance(network, payer)
  const { delegations } = await readOwnDelegations(network, payer, channels)
  const broken = delegations.find(({ left }) => left === undefined || left < 0n)
  if (broken) return [`the escrow of ${address} for ${broken.spender} holds ${broken.left}`]
  const given = deposits.reduce((sum, amount) => sum + amount, 0n)
  const escrows = delegations.reduce((sum, { left = 0n }) => sum + left, 0n)
  const spent = payments.reduce((sum, { from, amount }) => sum + (from === address ? amount : 0n), 0n)
  const present = spendable.value + receiving.value + escrows
  return present + spent === given ? [] : [`${address} has ${present} and paid ${spent}, of ${given}`]
}
