import { randomUUID } from 'node:crypto'
import type { Database } from '#lib/db/connection.ts'
import { type Lease, releaseLease, renewLease, takeLease } from '#lib/db/leases.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import type { Depositor } from './deposit.ts'
import { dispense } from './dispensing.ts'
import { type Claim, findGrants, findOpenGrants, type Grant } from './grant-record.ts'

/**
 * Turns claimed grants into deposits, one after the other, since the network takes one transaction of an account at a
 * time. One per process; of all processes the one that has the lease of the faucet's account dispenses, also for the
 * others, and for those that are gone.
 */
export interface Dispenser {
  /** Resolves to the grant once it has ended, or after `patience` milliseconds, to undefined. */
  follow(claim: Claim, patience: number): Promise<Grant | undefined>
  /** Takes up whatever is open, though nobody waits for it here. */
  wake(): void
  /** Stops, for a process that ends; resolves when the step under way is over and the lease is free. */
  stop(): Promise<void>
}

/** Seconds. Between a renewal and a sending lie at most two calls of five seconds. */
const LEASE = 15

interface Waiter {
  claim: Claim
  finish: (grant: Grant | undefined) => void
}

/** @param given.database opens the database anew at each use, so that an outage is only waited through */
export function openDispenser(given: Depositor & { database: () => Promise<Database> }): Dispenser {
  const { network, database } = given
  const account = given.keypair.publicKey()
  const holder = `faucet ${randomUUID()}`
  const waiters = new Set<Waiter>()
  const sentAt = new Map<string, number>()
  let lease: Lease | undefined
  let running: Promise<void> | undefined
  /** whether anything may be open, as far as is known */
  let busy = false
  let stopped = false

  const goesOn = () => !stopped && (busy || waiters.size > 0)

  function wake(): void {
    busy = true
    running ??= run()
  }

  function follow(claim: Claim, patience: number): Promise<Grant | undefined> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => waiter.finish(undefined), patience)
      const waiter: Waiter = {
        claim,
        finish: (grant) => {
          clearTimeout(timer)
          waiters.delete(waiter)
          resolve(grant)
        },
      }
      waiters.add(waiter)
      wake()
    })
  }

  async function run(): Promise<void> {
    while (goesOn()) {
      const more = await step().catch((error: unknown) => {
        log('error', 'faucet', { failure: describeFailure(error) })
        return false
      })
      if (!more && goesOn()) await new Promise((resolve) => setTimeout(resolve, network.pollMs))
    }
    await letGo()
    running = undefined
    if (goesOn()) wake()
  }

  /** Whether there is more to do at once. */
  async function step(): Promise<boolean> {
    // Whoever wakes from here on may have claimed what this step does not see.
    busy = false
    const db = await database()
    const open = await findOpenGrants(db)
    if (open.length > 0) busy = true
    const held = open.length > 0 ? await hold(db) : undefined
    const more = held ? await dispense({ db, depositor: given, lease: held, sentAt }, open) : false
    await notify(db)
    return more
  }

  async function hold(db: Database): Promise<Lease | undefined> {
    if (lease && !(await renewLease(db, lease, LEASE))) lease = undefined
    lease ??= await takeLease(db, account, { holder, seconds: LEASE })
    return lease
  }

  async function letGo(): Promise<void> {
    const held = lease
    lease = undefined
    sentAt.clear()
    try {
      if (held) await releaseLease(await database(), held)
    } catch (error) {
      log('error', 'faucet', { failure: describeFailure(error) })
    }
  }

  /** Tells those who wait here, whoever it was that moved their grants. */
  async function notify(db: Database): Promise<void> {
    if (waiters.size === 0) return
    const waiting = [...waiters]
    const grants = await findGrants(db, [...new Set(waiting.map(({ claim }) => claim.account))])
    for (const { claim, finish } of waiting) {
      const grant = grants.find((one) => one.account === claim.account)
      // Another claim of the account stands there now: this one was given back before that could be made.
      if (grant?.claim !== claim.claim) finish(undefined)
      else if (grant.settledAt) finish(grant)
    }
  }

  return {
    follow,
    wake,
    stop: async () => {
      stopped = true
      // Those who wait give back what is not signed, while there is a database to do it in.
      for (const { finish } of [...waiters]) finish(undefined)
      await running
    },
  }
}
