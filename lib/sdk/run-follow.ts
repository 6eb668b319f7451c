import { patiently, pause } from './patience.ts'
import { take } from './payroll-client.ts'
import { RunError } from './run-error.ts'
import type { RunRequest } from './run-request.ts'

/** How often the progress is read (ms), and how many times a failed batch may stay failed without a run while its channels are taken. */
const POLL_MS = 500
const STILL_POLLS = 120

/** How often a poll is repeated: the service may be away for ten minutes. */
const POLL_ATTEMPTS = 66

/** Shows the progress of the batch until its run ends; resolves to why the run failed, if it did. */
export async function follow({ client, batch, say, signal, progress }: RunRequest): Promise<RunError | undefined> {
  const beganAt = performance.now()
  let atFirst: number | undefined
  let last = ''
  for (let still = 0; still < STILL_POLLS; still += 1) {
    const state = await patiently(() => take(client.GET('/batches/{id}/status', { params: { path: { id: batch } } })), {
      attempts: POLL_ATTEMPTS,
      signal,
    })
    const { status, settledCount, failedCount, payoutCount, run } = state
    const failed = failedCount > 0 ? `, ${failedCount} failed` : ''
    const line = `The service says: ${status}, ${settledCount} of ${payoutCount} paid${failed}`
    atFirst ??= settledCount
    const paceMs = (performance.now() - beganAt) / (settledCount - atFirst)
    const etaSeconds = Math.round((paceMs * (payoutCount - settledCount)) / 1000)
    progress?.({
      step: 'paying',
      done: settledCount,
      of: payoutCount,
      ...(Number.isFinite(etaSeconds) && { etaSeconds }),
    })
    if (line !== last) say(line)
    if (run?.status === 'failed') {
      const code = run.code === undefined ? '' : ` (${run.code})`
      return new RunError('run-failed', `the run ended: ${run.error ?? 'the service names no reason'}${code}`, run.code)
    }
    if (run?.status === 'completed' || status === 'completed') return undefined
    if (line !== last || run?.status === 'running') still = 0
    last = line
    await pause(POLL_MS, signal)
  }
  return undefined
}
