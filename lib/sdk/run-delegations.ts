import { readOwnDelegations, revokeAll } from '#lib/wallet/escrow.ts'
import type { DelegationNote } from './own-notes.ts'
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

/** The delegations on the ledger that the employer's notes name: by channel, with the batches that noted them, in that order. */
async function readNoted({ deployment, holder, notes }: DelegationRequest): Promise<Map<string, DelegationNote[]>> {
  const noted = Map.groupBy(notes.delegations(), ({ channel }) => channel)
  if (noted.size === 0) return new Map()
  const { delegations } = await patiently(() => readOwnDelegations(deployment, holder, [...noted.keys()]))
  return new Map(
    delegations.map(({ spender, liveUntilLedger }) => [
      spender,
      (noted.get(spender) ?? []).filter((note) => note.liveUntilLedger === liveUntilLedger),
    ]),
  )
}

/**
 * The batch that a delegation belongs to: the first that noted it and is unfinished, if that is another than the request's. Two
 * commands that began at once may have chosen the same ledger.
 */
async function findOwner(request: DelegationRequest, noted: readonly DelegationNote[]): Promise<string | undefined> {
  for (const { batch } of noted) {
    if (batch === request.batch) return undefined
    if (await isUnfinished(request, batch)) return batch
  }
  return undefined
}

/** The channels whose present delegation belongs to another unfinished batch, by the employer's notes: each with that batch. */
export async function findTaken(request: DelegationRequest): Promise<Map<string, string>> {
  const taken = new Map<string, string>()
  for (const [channel, noted] of await readNoted(request)) {
    const owner = await findOwner(request, noted)
    if (owner !== undefined) taken.set(channel, owner)
  }
  return taken
}

/** @throws RunError `channel-busy` if the delegation belongs to another batch that is unfinished: a run would lose its escrow */
export async function requireOwnDelegation(
  request: DelegationRequest,
  { channel, liveUntilLedger }: { channel: string; liveUntilLedger: number },
): Promise<void> {
  const noted = request.notes
    .delegations()
    .filter((one) => one.channel === channel && one.liveUntilLedger === liveUntilLedger)
  const owner = await findOwner(request, noted)
  if (owner === undefined) return
  throw new RunError('channel-busy', `the delegation to ${channel} is for batch ${owner}, which is not finished`)
}

/**
 * Revokes the delegations that runs of this batch were signed over, unless an unfinished run may be paid from them. Resolves to the
 * returned amount, in base units.
 * @param kept the channels that are still needed
 * @throws RunError `channel-busy` if one of them is left; WalletError; PayrollError; LedgerError
 */
export async function revokeOwn(request: DelegationRequest, kept: ReadonlySet<string> = new Set()): Promise<bigint> {
  const { client, deployment, holder, batch } = request
  const own: DelegationNote[] = []
  for (const [channel, noted] of await readNoted(request)) {
    const note = noted.find((one) => one.batch === batch)
    if (note && !kept.has(channel) && (await findOwner(request, noted)) === undefined) own.push(note)
  }
  // The service can call a run unfinished that is not: it decides when the escrow returns, and can't have another one made.
  const busy =
    own.length > 0 && (await hasForeignRun(request))
      ? new Set((await readTerms(client)).channels.flatMap(({ address, available }) => (available ? [] : [address])))
      : new Set<string>()
  let returned = 0n
  for (const delegation of own.filter(({ channel }) => !busy.has(channel))) {
    returned += await patiently(() =>
      revokeAll(deployment, holder, [delegation], (signedXdr) => sponsorCall(client, signedXdr, deployment.rpc)),
    )
  }
  const left = own.find(({ channel }) => busy.has(channel))
  if (!left) return returned
  throw new RunError('channel-busy', `the delegation to ${left.channel} is not revoked, because another run may use it`)
}

/** Requires that the ledger shows no delegation that a run of this batch was signed over. @throws RunError `channel-busy` */
export async function requireNoneOwn(request: DelegationRequest): Promise<void> {
  for (const [channel, noted] of await readNoted(request)) {
    if (!noted.some(({ batch }) => batch === request.batch)) continue
    throw new RunError(
      'channel-busy',
      `the delegation to ${channel} could still pay this batch, and another batch needs it`,
    )
  }
}

/** Whether a run of another batch, which these notes do not have, is unfinished: it was started from another device. */
async function hasForeignRun(request: DelegationRequest): Promise<boolean> {
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
