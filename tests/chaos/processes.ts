import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { FaultProxy } from '../support/fault-proxy.ts'
import { freePort } from '../support/port.ts'
import type { SignedInPayer } from '../support/test-service.ts'
import type { Instance, Mortal } from './history.ts'
import { amountAt } from './items.ts'

/** A separate process that can be killed and paused. */
interface Killable extends Mortal {
  freeze(milliseconds: number): Promise<boolean>
  end(): void
}

/** Exits that this run didn't cause: no fault of network or database may end a process. */
export const unasked: string[] = []

/** The number of characters of a process's output that are kept. */
const LAST_WORDS = 2_000

async function startProcess(file: string, variables: Record<string, string>): Promise<Killable> {
  let child: ChildProcess
  let isBusy = false
  const start = async () => {
    const next = fork(new URL(file, import.meta.url), {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      env: { ...process.env, ...variables },
    })
    child = next
    let said = ''
    next.stderr?.on('data', (chunk: Buffer) => {
      said = `${said}${chunk}`.slice(-LAST_WORDS)
    })
    const ended = once(next, 'exit').then(async ([code, signal]) => {
      if (signal === 'SIGKILL') return
      unasked.push(`${file} ended with ${code ?? signal}: ${said}`)
      await start()
    })
    await Promise.race([once(next, 'message'), ended])
  }
  /** One at a time: a process that is stopped or starting is left alone. */
  const alone = async (work: () => Promise<void>) => {
    if (isBusy) return false
    isBusy = true
    await work().finally(() => {
      isBusy = false
    })
    return true
  }
  await start()
  return {
    kill: () =>
      alone(async () => {
        // It may have exited and be restarting.
        if (child.exitCode !== null) return
        const gone = once(child, 'exit')
        child.kill('SIGKILL')
        await gone
        await start()
      }),
    freeze: (milliseconds) =>
      alone(async () => {
        child.kill('SIGSTOP')
        await new Promise((resolve) => setTimeout(resolve, milliseconds))
        child.kill('SIGCONT')
      }),
    end: () => child.kill('SIGKILL'),
  }
}

/** A relay behind a separate RPC. */
export function startRelayProcess(variables: Record<string, string>, proxy: FaultProxy): Promise<Killable> {
  return startProcess('relay-process.ts', { ...variables, STELLAR_RPC_URL: proxy.url })
}

/** A service behind a separate RPC. */
export async function startInstance(
  variables: Record<string, string>,
  proxy: FaultProxy,
): Promise<Killable & Instance & { base: string }> {
  const port = await freePort()
  const base = `http://localhost:${port}`
  const mortal = await startProcess('service-process.ts', {
    ...variables,
    PORT: String(port),
    STELLAR_RPC_URL: proxy.url,
  })
  const ask = async (path: string, payer: SignedInPayer, body?: unknown) => {
    const response = await fetch(`${base}/api${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      signal: AbortSignal.timeout(60_000),
      headers: { Authorization: `Bearer ${payer.session}`, 'Content-Type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  return {
    ...mortal,
    base,
    post: (payer, request) => ask('/transfer', payer, request),
    poll: async (payer) => void (await ask('/payouts', payer)),
    startJob: async (payer, transfers) => {
      const amounts = Array.from({ length: transfers }, (_, position) => amountAt(position))
      await ask('/batch', payer, { amounts })
    },
  }
}
