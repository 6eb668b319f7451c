import { Client } from 'pg'
import type { Fault, FaultProxy } from '../support/fault-proxy.ts'

/** A place in a program's work. `reached` resolves once it is there; it does not get past it before it is killed. */
export interface Step {
  reached: Promise<void>
  /** Opens the way for the program that comes after. */
  letGo(): Promise<void>
}

/** The two ways to hold a program: at a question to the RPC, and at a lock of the database. */
export interface Steps {
  /** Its nth call of this method; `delivered` lets the call through and withholds the answer. */
  atCall(method: string, options: { delivered: boolean; nth?: number }): Step
  /** A lock that `statement` has taken when the program made its nth call of `method`. */
  atLock(statement: string, options: { from: string; nth?: number }): Step
  close(): Promise<void>
}

/** A step by its name, for what is at stake. */
export type NamedStep<Work> = [name: string, step: (steps: Steps, work: Work) => Step]

export async function openSteps(proxy: FaultProxy, databaseUrl: string): Promise<Steps> {
  const watcher = new Client({ connectionString: databaseUrl })
  await watcher.connect()

  async function waitForBlocked(): Promise<void> {
    for (;;) {
      const { rows } = await watcher.query(
        `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      )
      if (rows.length > 0) return
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }

  function atCall(method: string, { delivered, nth = 1 }: { delivered: boolean; nth?: number }): Step {
    let seen = 0
    const reached = new Promise<void>((resolve) => {
      proxy.rule((call): Fault => {
        if (call.method !== method) return 'pass'
        seen += 1
        if (seen < nth) return 'pass'
        // The network has a moment to take in what was delivered.
        setTimeout(resolve, delivered ? 50 : 0)
        return { hang: true, delivered }
      })
    })
    return { reached, letGo: async () => proxy.rule(null) }
  }

  function atLock(statement: string, { from, nth = 1 }: { from: string; nth?: number }): Step {
    const holder = new Client({ connectionString: databaseUrl })
    const take = async () => {
      await holder.connect()
      await holder.query('BEGIN')
      await holder.query(statement)
    }
    let seen = 0
    const reached = new Promise<void>((resolve, reject) => {
      let taken: Promise<void> | undefined
      proxy.rule(async (call): Promise<Fault> => {
        if (call.method === from) seen += 1
        if (call.method === from && seen >= nth) {
          taken ??= take().then(() => void waitForBlocked().then(resolve, reject), reject)
          await taken
        }
        return 'pass'
      })
    })
    return {
      reached,
      letGo: async () => {
        proxy.rule(null)
        await holder.end()
      },
    }
  }

  return { atCall, atLock, close: () => watcher.end() }
}
