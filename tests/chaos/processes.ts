import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { FaultProxy } from '../support/fault-proxy.ts'
import { freePort } from '../support/port.ts'
import { rawRequest } from '../support/raw-request.ts'
import type { SignedInPayer } from '../support/test-service.ts'
import type { Instance, Mortal } from './history.ts'
import { nextAmount, requested } from './lines.ts'

/** A separate process that can be killed and paused. */
interface Killable extends Mortal {
  freeze(milliseconds: number): Promise<boolean>
  /** Kills the process, as soon as no other action is in progress. The returned function starts it again. */
  halt(): Promise<() => Promise<void>>
  end(): void
}

/** Exits that this run didn't cause, since no fault may end a process, and requests without a response. */
export const unasked: string[] = []

/** The number of characters of a process's output that are kept. */
const LAST_WORDS = 2_000

/** How long (ms) a client waits for a response: much longer than TRANSFER_WAIT. */
export const CLIENT_WAIT_MS = 60_000

/** Preloaded into a process, shifts its clock by CLOCK_SHIFT_MS. */
const SHIFTED_CLOCK = new URL('../support/shifted-clock.ts', import.meta.url).href

async function startProcess(file: string, variables: Record<string, string>): Promise<Killable> {
  let child: ChildProcess
  let isBusy = false
  let shiftMs = 0
  const start = async () => {
    const next = fork(new URL(file, import.meta.url), {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      execArgv: ['--import', SHIFTED_CLOCK],
      env: { ...process.env, ...variables, CLOCK_SHIFT_MS: String(shiftMs) },
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
  const exit = async () => {
    // It may have exited already.
    if (child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }
  await start()
  return {
    kill: (clockShiftMs) =>
      alone(async () => {
        // It may have exited and be restarting.
        if (child.exitCode !== null) return
        shiftMs = clockShiftMs
        await exit()
        await start()
      }),
    halt: async () => {
      while (isBusy) await new Promise((resolve) => setTimeout(resolve, 50))
      isBusy = true
      await exit()
      return async () => {
        await start()
        isBusy = false
      }
    },
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
  const ask = async (path: string, payer: SignedInPayer, body?: unknown, upgrade?: string) => {
    const signal = AbortSignal.timeout(CLIENT_WAIT_MS)
    const sent = rawRequest(base, `/api${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      signal,
      headers: {
        Authorization: `Bearer ${payer.session}`,
        'Content-Type': 'application/json',
        ...(upgrade !== undefined && { Connection: 'Upgrade', Upgrade: upgrade }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const { status, text } = await sent.catch((error: unknown) => {
      if (signal.aborted)
        unasked.push(`no response to ${path}${upgrade === undefined ? '' : ` with Upgrade: ${upgrade}`}`)
      throw error
    })
    return { status, body: JSON.parse(text) as Record<string, unknown> }
  }
  return {
    ...mortal,
    base,
    post: (payer, request, upgrade) => ask('/transfer', payer, request, upgrade),
    poll: async (payer) => void (await ask('/payouts', payer)),
    startJob: async (payer, transfers) => {
      const amounts = Array.from({ length: transfers }, nextAmount)
      const { status, body } = await ask('/batch', payer, { amounts })
      if (status === 200) requested.set(String(body.jobId), amounts)
    },
  }
}
