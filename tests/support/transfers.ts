import { TransactionBuilder } from '@stellar/stellar-sdk'
import { expect } from 'vitest'
import { buildTransfer } from '#lib/wallet/calls.ts'
import type { CallOptions } from '#lib/wallet/transaction.ts'
import type { Call, Fault } from './fault-proxy.ts'
import type { SignedInPayer, TestService } from './test-service.ts'

/** A signed transfer of a new employer, ready to be posted. */
export async function prepareTransfer(
  service: TestService<'embedded'>,
  to: string,
  { amount = 5_0000000n, ...options }: CallOptions & { amount?: bigint } = {},
) {
  const employer = await service.employ(100n * amount)
  const transfer = { to, amount, opening: employer.opening }
  const built = await buildTransfer(service.ledger.network, employer, transfer, options)
  /** Another transfer with the same number. */
  const buildRival = () => buildTransfer(service.ledger.network, employer, { ...transfer, amount: 1n })
  return { employer, ...built, buildRival, post: () => service.post(employer, { signedXDR: built.signedXdr }) }
}

/** Requires the transfer's cost in its row and in the account's quota, and no remaining reservation. */
export async function expectSettled(
  service: TestService<'embedded'>,
  employer: SignedInPayer,
  innerHash: string,
): Promise<void> {
  const row = await service.findTransfer(innerHash)
  expect(row?.settledAt).not.toBeNull()
  const quotas = await service.db.query.quotas.findMany()
  const own = quotas.find(({ account }) => account === employer.address)
  expect(own).toMatchObject({ held: 0n, used: row?.feeCharged ?? 0n, count: 1 })
}

/** How many times the sponsor paid for an inner transaction, according to the ledger. */
export async function countFeeBumps(service: TestService<'embedded'>, innerHash: string): Promise<number> {
  const { rpc, passphrase } = service.ledger.network
  const { oldestLedger } = await rpc.getHealth()
  let bumps = 0
  let page = await rpc.getTransactions({ startLedger: oldestLedger, pagination: { limit: 200 } })
  for (;;) {
    for (const { envelopeXdr } of page.transactions) {
      const built = TransactionBuilder.fromXdr(envelopeXdr.toXdr('base64'), passphrase)
      if (!('innerTransaction' in built)) continue
      if (Buffer.from(built.innerTransaction.hash()).toString('hex') === innerHash) bumps += 1
    }
    if (page.transactions.length < 200) return bumps
    page = await rpc.getTransactions({ pagination: { cursor: page.cursor, limit: 200 } })
  }
}

/** A rule that applies `fault` to the next `times` calls of a method, and passes everything else. */
export function next(method: string, times: number, fault: Fault): (call: Call) => Fault {
  let left = times
  return (call) => {
    if (call.method !== method || left === 0) return 'pass'
    left -= 1
    return fault
  }
}

/** A rule that runs `act` before the first call of a method is passed on. */
export function beforeFirst(method: string, act: () => Promise<unknown>): (call: Call) => Promise<Fault> {
  let acted: Promise<unknown> | undefined
  return async (call) => {
    if (call.method === method && !acted) {
      acted = act()
      await acted
    }
    return 'pass'
  }
}

/** A rewriting of lookups by a node that stands still: each gets the first response, as NOT_FOUND. */
export function standStill(): { rewrite: (found: Record<string, unknown>) => Record<string, unknown>; has(): boolean } {
  let standing: Record<string, unknown> | undefined
  const rewrite = (found: Record<string, unknown>) => {
    standing ??= notFound(found)
    return standing
  }
  return { rewrite, has: () => standing !== undefined }
}

/** A rule that keeps every transaction from the network, and rewrites the responses to lookups. */
export const withholdAnd =
  (rewrite: (found: Record<string, unknown>) => Record<string, unknown>) =>
  (call: Call): Fault =>
    call.method === 'getTransaction' ? { rewrite } : withhold(call)

/** Moves the close time of a response's latest ledger beyond every maxTime. */
export function afterMaxTime(result: Record<string, unknown>): Record<string, unknown> {
  return { ...result, latestLedgerCloseTime: String(Number(result.latestLedgerCloseTime) + 1_000) }
}

/** A rule that keeps every transaction from the network. */
export const withhold = ({ method }: Call): Fault =>
  method === 'sendTransaction' ? { answer: sendAnswer('PENDING') } : 'pass'

/** A forged sendTransaction response. */
export function sendAnswer(status: string, errorResultXdr?: string): Record<string, unknown> {
  return {
    status,
    hash: '0'.repeat(64),
    latestLedger: 1,
    latestLedgerCloseTime: '1',
    ...(errorResultXdr && { errorResultXdr }),
  }
}

/** Turns a response into NOT_FOUND from a node that is one ledger behind the transaction. */
export function notFound(result: Record<string, unknown>): Record<string, unknown> {
  const { oldestLedger, oldestLedgerCloseTime, ledger, createdAt, status } = result
  const isFound = status !== 'NOT_FOUND'
  const latestLedger = isFound ? Number(ledger) - 1 : result.latestLedger
  const latestLedgerCloseTime = isFound ? String(Number(createdAt) - 1) : result.latestLedgerCloseTime
  return { status: 'NOT_FOUND', latestLedger, latestLedgerCloseTime, oldestLedger, oldestLedgerCloseTime }
}
