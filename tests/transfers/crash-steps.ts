import { Client } from 'pg'
import type { Fault, FaultProxy } from '../support/fault-proxy.ts'

/** A place at which a service is held until it stops talking. `reached` resolves once the service is there. */
export interface Step {
  reached: Promise<void>
  /** Opens the gate for the next service. */
  letGo(): Promise<void>
}

interface Calls {
  nth?: number
  since?: { method: string; nth: number }
}

/** The two ways to hold a service: at a question to the RPC, and at a lock of the database. */
export interface Steps {
  /** Withholds its nth call of this method. With `since`, calls count from the nth call of that other method. */
  beforeCall(method: string, calls?: Calls): Step
  /** Forwards its nth call of this method, and withholds the response. */
  afterCall(method: string, calls?: Calls): Step
  /**
   * Blocks it at a lock that `statement` takes when the service makes its nth call of the method `from`. The statement
   * may be set later, once the row to lock is known; calls are counted from now on.
   */
  atLock(statement: string | Promise<string>, options: { from: string; nth?: number }): Step
  close(): Promise<void>
}

/** A step, by the name that a test shows for it. */
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

  const atCall =
    (delivered: boolean) =>
    (method: string, { nth = 1, since }: Calls = {}): Step => {
      let seen = 0
      let left = since?.nth ?? 0
      const reached = new Promise<void>((resolve) => {
        proxy.rule((call): Fault => {
          // On a busy machine the service may look up a transfer whose answer is withheld, before it is killed.
          if (delivered && seen >= nth && call.method.startsWith('getTransaction'))
            return { hang: true, delivered: false }
          if (call.method === since?.method) left -= 1
          if (call.method !== method || left > 0) return 'pass'
          seen += 1
          if (seen < nth) return 'pass'
          // Gives the network a moment to process the delivered call.
          setTimeout(resolve, delivered ? 50 : 0)
          return { hang: true, delivered }
        })
      })
      return { reached, letGo: async () => proxy.rule(null) }
    }

  function atLock(statement: string | Promise<string>, { from, nth = 1 }: { from: string; nth?: number }): Step {
    const holder = new Client({ connectionString: databaseUrl })
    const take = async () => {
      await holder.connect()
      await holder.query('BEGIN')
      await holder.query(await statement)
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

  return { beforeCall: atCall(false), afterCall: atCall(true), atLock, close: () => watcher.end() }
}

/** Kills the service once it is at the step, and opens the gate for the next one. */
export async function killAt({ reached, letGo }: Step, { kill }: { kill(): Promise<void> }): Promise<void> {
  await reached
  await kill()
  await letGo()
}
