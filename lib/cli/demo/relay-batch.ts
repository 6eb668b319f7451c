import { setTimeout } from 'node:timers/promises'
import { z } from 'zod'
import { type PayrollClient, take } from '#lib/sdk/payroll-client.ts'

const READY = z.object({
  relay: z.object({ ok: z.boolean(), configured: z.boolean().optional(), problem: z.string().optional() }),
})

/** Waits until the service's relay has created its channels. Resolves to the reason if there is no relay to show. */
export async function awaitRelay(base: string, say: (line: string) => void): Promise<string | undefined> {
  let problem = 'no relay is running'
  for (let attempt = 0; attempt < 60; attempt += 1) {
    const { relay } = READY.parse(await (await fetch(`${base}/api/ready`)).json())
    if (relay.configured === false) return 'batch execution is off'
    if (relay.ok && relay.problem === undefined) return undefined
    problem = relay.problem ?? problem
    if (attempt === 0) say('Waiting for the relay to create its channel accounts …')
    await setTimeout(1_000)
  }
  return problem
}

const PROGRESS = z.object({ progress: z.string(), left: z.string().optional() })

/** Prints the progress of a relay's proof, if this line of the service's log reports it. */
export function sayProgress(line: string, say: (line: string) => void): void {
  if (!line.includes('"progress"')) return
  const { progress, left } = PROGRESS.parse(JSON.parse(line))
  say(`  the relay: ${progress}${left === undefined ? '' : `, ${left}`}`)
}

/**
 * Has the relay pay `amounts` (base units) to the contractors, and reports each result. Resolves to the job's final
 * state.
 */
export async function runRelayBatch(
  client: PayrollClient,
  amounts: readonly bigint[],
  say: (line: string) => void,
): Promise<string> {
  say('')
  say('Sending a batch to the relay, which pays it from several channel accounts in parallel …')
  const { jobId } = await take(client.POST('/batch', { body: { amounts: amounts.map(Number) } }))
  const reported = new Set<number>()
  for (;;) {
    const { status, results, error } = await take(client.GET('/batch/{jobId}', { params: { path: { jobId } } }))
    for (const { i, hash, status: outcome } of results.filter((result) => !reported.has(result.i))) {
      reported.add(i)
      say(`  transfer ${i + 1}/${amounts.length}  ${outcome}  ${hash}`)
    }
    if (status !== 'running') {
      say(`The relay's batch is ${status}${error === undefined ? '' : `: ${error}`}`)
      return status
    }
    await setTimeout(250)
  }
}
