import { readOwnDelegations, revokeAll } from '#lib/wallet/escrow.ts'
import { patiently } from './patience.ts'
import { PayrollError, pages, take } from './payroll-client.ts'
import { RunError } from './run-error.ts'
import type { RunRequest } from './run-request.ts'
import { readTerms } from './run-terms.ts'
import { sponsorCall } from './sponsored-call.ts'

type DelegationRequest = Pick<RunRequest, 'client' | 'deployment' | 'holder' | 'notes' | 'batch'>

/** Whether a batch may still be paid from its delegations. The service can only say so, not take anything by it. */
async function isUnfinished({ client }: Pick<DelegationRequest, 'client'>, batch: string): Promise<boolean> {
  try {
    const { status, run, payoutCount } = await patiently(() =>
      take(client.GET('/batches/{id}/status', { params: { path: { id: batch } } })),
    )
    return run?.status === 'running' || (run === undefined && status !== 'completed' && payoutCount > 0)
  } catch (error) {
    if (error instanceof PayrollError && error.status === 404) return false
    throw error
  }
}

/** The channels whose present delegation was made for another unfinished batch, by the employer's notes: each with that batch. */
export async function findTaken(request: DelegationRequest): Promise<Map<string, string>> {
  const { deployment, holder, notes, batch } = request
  const others = notes.delegations().filter((one) => one.batch !== batch)
  const taken = new Map<string, string>()
  if (others.length === 0) return taken
  const channels = [...new Set(others.map(({ channel }) => channel))]
  const { delegations } = await patiently(() => readOwnDelegations(deployment, holder, channels))
  const present = new Map(delegations.map(({ spender, liveUntilLedger }) => [spender, liveUntilLedger]))
  for (const [other, own] of Map.groupBy(others, (one) => one.batch)) {
    const there = own.filter(({ channel, liveUntilLedger }) => present.get(channel) === liveUntilLedger)
    if (there.length === 0 || !(await isUnfinished(request, other))) continue
    for (const { channel } of there) taken.set(channel, other)
  }
  return taken
}

/** @throws RunError `channel-busy` if the delegation was made for another batch that is unfinished: a run would lose its escrow */
export async function requireOwnDelegation(
  request: DelegationRequest,
  { channel, liveUntilLedger }: { channel: string; liveUntilLedger: number },
): Promise<void> {
  const named = request.notes
    .delegations()
    .filter((one) => one.channel === channel && one.liveUntilLedger === liveUntilLedger)
  for (const { batch } of named) {
    if (batch === request.batch || !(await isUnfinished(request, batch))) continue
    throw new RunError('channel-busy', `the delegation to ${channel} is for batch ${batch}, which is not finished`)
  }
}

/**
 * Revokes the delegations that runs of this batch were signed over, unless an unfinished run may be paid from them. Resolves to the
 * returned amount, in base units.
 * @param kept the channels that are still needed
 * @throws RunError `channel-busy` if one of them is left; WalletError; PayrollError; LedgerError
 */
export async function revokeOwn(request: RunRequest, kept: ReadonlySet<string> = new Set()): Promise<bigint> {
  const { client, deployment, holder, notes, batch } = request
  const noted = notes.delegations().filter((one) => one.batch === batch && !kept.has(one.channel))
  if (noted.length === 0) return 0n
  const channels = [...new Set(noted.map(({ channel }) => channel))]
  const { delegations } = await patiently(() => readOwnDelegations(deployment, holder, channels))
  const present = new Map(delegations.map(({ spender, liveUntilLedger }) => [spender, liveUntilLedger]))
  const own = noted.filter(({ channel, liveUntilLedger }) => present.get(channel) === liveUntilLedger)
  // The service can call a run unfinished that is not: it decides when the escrow returns, and can't have another one made.
  const busy =
    own.length > 0 && (await hasForeignRun(request))
      ? new Set((await readTerms(client)).channels.flatMap(({ address, available }) => (available ? [] : [address])))
      : new Set<string>()
  let returned = 0n
  for (const delegation of own.filter(({ channel }) => !busy.has(channel))) {
    returned += await patiently(() =>
      revokeAll(deployment, holder, [delegation], (signedXdr) => sponsorCall(client, signedXdr)),
    )
  }
  const left = own.find(({ channel }) => busy.has(channel))
  if (!left) return returned
  throw new RunError('channel-busy', `the delegation to ${left.channel} is not revoked, because another run may use it`)
}

/** Whether a run of another batch, which these notes do not have, is unfinished: it was started from another device. */
async function hasForeignRun(request: RunRequest): Promise<boolean> {
  const { client, notes, batch } = request
  const noted = new Set([batch, ...notes.delegations().map((one) => one.batch)])
  for (const status of ['started', 'ready', 'failed'] as const) {
    for await (const page of pages((query) => client.GET('/batches', { params: { query: { ...query, status } } }))) {
      for (const { id } of page.batches) {
        if (noted.has(id)) continue
        const { run } = await patiently(() => take(client.GET('/batches/{id}/status', { params: { path: { id } } })))
        if (run?.status === 'running') return true
      }
    }
  }
  return false
}
