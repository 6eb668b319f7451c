import { describeFailure, log } from '#lib/observability/log.ts'
import type { LedgerRecord } from './ledger-record.ts'
import type { TransferRecord } from './transfer-record.ts'

/** How it ended for who waited: the settled row, the network's refusal, or neither before patience ran out. */
export type Ending = TransferRecord | 'rejected' | 'open'

/** A transfer whose outcome this process is after. */
export interface Pending {
  record: TransferRecord
  /** recorded by this process a moment ago, and never sent before */
  isNew: boolean
  /** last ledger of an answer that did not know the transfer */
  lookedAt: number
  /** latest ledger known when the envelope was last sent; -1 before that */
  sentAt: number
  /** from this ledger on, an answer that does not know the transfer confirms that the network refused it */
  contestedUntil: number | undefined
  /** the network will not have it: it is looked for until it is found or dead, but not sent unless somebody asks again */
  rejected: boolean
  /** what it has come to, null for death, once that is known: then only the database has still to be told */
  outcome: LedgerRecord | null | undefined
  busy: boolean
  /** the last failure that was logged, so that an outage is one line and not one for each look */
  failure: string | undefined
  waiters: Set<(ending: Ending) => void>
}

export function newPending(record: TransferRecord, isNew: boolean): Pending {
  return {
    record,
    isNew,
    // Nothing recorded just now can stand in a ledger that was closed before.
    lookedAt: isNew ? record.sinceLedger : -1,
    sentAt: -1,
    contestedUntil: undefined,
    // The refusal that another process, or an earlier one, has met with.
    rejected: record.status === 'sent' && record.resultCode !== null,
    outcome: undefined,
    busy: false,
    failure: undefined,
    waiters: new Set(),
  }
}

/** Somebody asks again for what the network has refused: it is looked up, and sent once more. */
export function reopen(entry: Pending): void {
  entry.rejected = false
  entry.lookedAt = -1
  entry.sentAt = -1
}

/** @param patience milliseconds */
export function waitFor(entry: Pending, patience: number): Promise<Ending> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => finish('open'), patience)
    const finish = (ending: Ending) => {
      clearTimeout(timer)
      entry.waiters.delete(finish)
      resolve(ending)
    }
    entry.waiters.add(finish)
  })
}

export function notify(entry: Pending, ending: Ending): void {
  for (const waiter of [...entry.waiters]) waiter(ending)
}

/** One thing at a time for each transfer; what fails is logged, and tried again at a later look. */
export async function exclusively(entry: Pending, work: () => Promise<void>): Promise<void> {
  if (entry.busy) return
  entry.busy = true
  try {
    await work()
    entry.failure = undefined
  } catch (error) {
    const failure = describeFailure(error)
    if (failure !== entry.failure) log('error', 'settlement', { hash: entry.record.innerHash, failure })
    entry.failure = failure
  } finally {
    entry.busy = false
  }
}
