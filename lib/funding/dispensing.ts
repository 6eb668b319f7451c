import type { Database } from '#lib/db/connection.ts'
import { type Lease, underLease } from '#lib/db/leases.ts'
import { Refusal } from '#lib/http/refusal.ts'
import { log } from '#lib/observability/log.ts'
import type { Network } from '#lib/stellar/network.ts'
import { send } from '#lib/stellar/send.ts'
import { isSequenceUsedByAnother } from '#lib/stellar/sequence.ts'
import { type Depositor, lookAtDeposit, signDeposit } from './deposit.ts'
import {
  type Grant,
  noteRefusal,
  returnClaim,
  type SignedDeposit,
  settleGrant,
  signGrant,
  unsignGrant,
} from './grant-record.ts'

/** What it takes to dispense: the faucet, and the lease of its account, renewed just now. */
export interface Dispensing {
  db: Database
  depositor: Depositor
  lease: Lease
  /** by the hash of a deposit: the latest ledger known when it was last sent from here */
  sentAt: Map<string, number>
}

/**
 * One step with the `open` grants, oldest first: sees to what is signed, and when nothing of this faucet is any more,
 * signs the next. Whether there may be more to do at once.
 * @throws Refusal `unavailable`; then the next step takes it up
 */
export async function dispense(dispensing: Dispensing, open: readonly Grant[]): Promise<boolean> {
  const account = dispensing.depositor.keypair.publicKey()
  let free = true
  for (const grant of open) {
    const deposit = signedDepositOf(grant)
    if (!deposit) continue
    const ended = await see(dispensing, grant, deposit)
    if (!ended && deposit.faucet === account) free = false
  }
  const next = free ? open.find(({ status }) => status === 'claimed') : undefined
  return next ? await sign(dispensing, next) : false
}

/** Whether the deposit is over: it stands on the ledger, or can no longer get there. */
async function see(dispensing: Dispensing, grant: Grant, deposit: SignedDeposit): Promise<boolean> {
  const { db, depositor, sentAt } = dispensing
  const look = await lookAtDeposit(depositor.network, deposit)
  if (look.ended) {
    await settleGrant(db, grant, look.ended)
    sentAt.delete(deposit.hash)
    log('info', 'faucet grant settled', { hash: deposit.hash, account: grant.account, status: look.ended.status })
    return true
  }
  if ((sentAt.get(deposit.hash) ?? -1) >= look.latestLedger) return false
  sentAt.set(deposit.hash, look.latestLedger)
  return await deliver(dispensing, grant, deposit)
}

/** Gives the network the deposit, unchanged however often. Whether it turns out that it can never apply. */
async function deliver({ db, depositor }: Dispensing, grant: Grant, deposit: SignedDeposit): Promise<boolean> {
  const { network } = depositor
  const sent = await send(network, deposit.envelope)
  if (sent.kind !== 'error') return false
  if (sent.resultCode !== grant.resultCode) {
    await noteRefusal(db, grant, sent.resultCode)
    log('info', 'faucet deposit refused', { hash: deposit.hash, code: sent.resultCode })
  }
  if (sent.resultCode !== 'txBadSeq' || !(await isOvertaken(network, deposit))) return false
  return await unsignGrant(db, grant)
}

/** Whether something else has used the deposit's sequence number: another program with the faucet's key, as a rule. */
function isOvertaken(network: Network, { faucet, sequence, hash, sinceLedger }: SignedDeposit): Promise<boolean> {
  return isSequenceUsedByAnother(network, { account: faucet, sequence, hash, startLedger: sinceLedger })
}

/** Signs, writes down, and only then sends. */
async function sign(dispensing: Dispensing, grant: Grant): Promise<boolean> {
  const { db, depositor, lease, sentAt } = dispensing
  const deposit = await signDeposit(depositor, { to: grant.account, amount: grant.amount }).catch((error: unknown) => {
    if (error instanceof Refusal && error.code === 'refused') return error
    throw error
  })
  if (deposit instanceof Refusal) {
    log('error', 'faucet deposit impossible', { account: grant.account, failure: deposit.message })
    return await returnClaim(db, grant, { contractError: contractErrorOf(deposit) })
  }
  const signed = await underLease(db, lease, (tx) => signGrant(tx, grant, deposit))
  if (!signed) return false
  sentAt.set(deposit.hash, deposit.sinceLedger)
  return await deliver(dispensing, { ...grant, ...deposit }, deposit)
}

function signedDepositOf(grant: Grant): SignedDeposit | undefined {
  const { status, faucet, envelope, hash, sequence, maxTime, sinceLedger } = grant
  if (status !== 'signed' || !faucet || !envelope || !hash) return undefined
  if (sequence === null || maxTime === null || sinceLedger === null) return undefined
  return { faucet, envelope, hash, sequence, maxTime, sinceLedger }
}

function contractErrorOf({ cause }: Refusal): number | null {
  if (typeof cause !== 'object' || !cause || !('contractError' in cause)) return null
  return typeof cause.contractError === 'number' ? cause.contractError : null
}
