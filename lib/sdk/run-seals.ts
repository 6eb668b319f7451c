import { keyIdOf, readSeal, sealPayout } from '#lib/wallet/seal.ts'
import { requireTrusted } from '#lib/wallet/trusted-relay.ts'
import { patiently } from './patience.ts'
import { type BatchState, type Payee, readBatch } from './payees.ts'
import { PayrollError, take } from './payroll-client.ts'
import { findTaken } from './run-delegations.ts'
import { RunError } from './run-error.ts'
import type { Line, RunRequest } from './run-request.ts'
import { readTerms } from './run-terms.ts'

/** Adds the instructions of a draft, sealed for its channels, and locks it. */
export async function makeReady(request: RunRequest): Promise<void> {
  const { client, batch, payees, say } = request
  const state = await readBatch(client, batch)
  requireSame(request, state)
  if (state.status !== 'draft') return
  const present = new Set(countedOf(request, state).map(({ contractorId }) => contractorId))
  const missing = payees.filter(({ contractor }) => !present.has(contractor))
  const params = { path: { id: batch } }
  if (missing.length > 0) {
    say(`Adding ${missing.length} payout${missing.length === 1 ? '' : 's'}`)
    const { chosen } = await chooseChannels(request)
    const sealed = await sealAll(request, missing, chosen)
    for (const part of partsOf(sealed)) {
      const instructions = part.map(({ payee, encryptedAmount }) => ({
        contractorId: payee.contractor,
        encryptedAmount,
      }))
      const { errors } = await take(client.POST('/batches/{id}/instructions', { params, body: { instructions } }))
      const [problem] = errors
      if (problem)
        throw new RunError('list-differs', `contractor ${problem.contractorId} cannot be paid: ${problem.reason}`)
    }
  }
  await take(client.POST('/batches/{id}/ready', { params }))
}

/** The payouts that count: those that are not canceled, and those that an earlier command found paid, and so canceled. */
export function countedOf({ notes }: Pick<RunRequest, 'notes'>, { payouts }: BatchState): BatchState['payouts'] {
  const paid = notes.paid()
  return payouts.filter(({ id, status }) => status !== 'canceled' || paid.has(id))
}

/**
 * Requires that a batch has one payout for each line of the list. One that is canceled counts if it is noted as paid.
 * @throws RunError `list-differs` if a payout is not in the list or a payee has two, or, once the batch is locked, none
 */
export function requireSame(
  { payees, notes }: Pick<RunRequest, 'payees' | 'notes'>,
  { status: batchStatus, payouts }: BatchState,
): void {
  const listed = new Map(payees.map((payee) => [payee.contractor, payee]))
  const present = new Set<string>()
  for (const { contractorId, address, status } of countedOf({ notes }, { status: batchStatus, payouts })) {
    const payee = listed.get(contractorId)
    if (!payee && status === 'paid') continue
    if (!payee) throw new RunError('list-differs', `the list of amounts lacks contractor ${contractorId}`)
    if (present.has(contractorId)) throw new RunError('list-differs', `contractor ${contractorId} has two payouts`)
    present.add(contractorId)
    if (status !== 'paid' && address !== payee.address) {
      throw new RunError('list-differs', `the payout of contractor ${contractorId} goes to another address: ${address}`)
    }
  }
  const unpaid = payees.find(({ contractor }) => !present.has(contractor))
  if (batchStatus !== 'draft' && unpaid) {
    throw new RunError('list-differs', `the batch has no payout of contractor ${unpaid.contractor}`)
  }
}

/** The channels that a run may use, and those among which it is divided. */
interface ChosenChannels {
  usable: ReadonlySet<string>
  chosen: string[]
}

/**
 * Chooses the channels for a run: the available ones that the employer's trusted document lists, and that have no delegation for
 * another run.
 * @throws RunError `no-channel`; WalletError `relay-unknown`
 */
export async function chooseChannels(request: RunRequest): Promise<ChosenChannels> {
  const { client, relay, channels } = request
  const terms = await readTerms(client)
  const trusted = await requireTrusted(relay, { publicKey: terms.publicKey, channels: [] })
  const taken = await findTaken(request)
  const available = terms.channels.flatMap((channel) => (channel.available ? [channel.address] : []))
  const known = available.filter((address) => trusted.channels.includes(address))
  // The document lists none of the available channels.
  if (known.length === 0) await requireTrusted(relay, { channels: available })
  const usable = known.filter((address) => !taken.has(address))
  const chosen = usable.slice(0, Math.max(1, Math.min(channels, terms.maxChannels)))
  if (chosen.length === 0) {
    const others = [...new Set(taken.values())].map((other) => `; batch ${other} has a delegation to one`)
    throw new RunError('no-channel', `no channel of the relay is available now${others.join('')}`)
  }
  return { usable: new Set(usable), chosen }
}

/** How many seals one request holds: the service accepts 256 KiB. */
const SEALS_PER_REQUEST = 250

/** A list in parts that a request can hold. */
const partsOf = <Item>(items: readonly Item[]): Item[][] =>
  Array.from({ length: Math.ceil(items.length / SEALS_PER_REQUEST) }, (_, part) =>
    items.slice(part * SEALS_PER_REQUEST, (part + 1) * SEALS_PER_REQUEST),
  )

/** Seals amounts for the channels in turn, and records the seals before anyone else has them. */
async function sealAll(
  { batch, relay, notes }: RunRequest,
  payees: readonly Payee[],
  channels: readonly string[],
): Promise<{ payee: Payee; channel: string; encryptedAmount: string }[]> {
  const { publicKey } = await requireTrusted(relay, { channels })
  const sealed = await Promise.all(
    payees.map(async (payee, index) => {
      const channel = channels[index % channels.length] ?? ''
      const { contractor, amount } = payee
      const encryptedAmount = await sealPayout(publicKey, { batch, contractor, spender: channel }, amount)
      return { payee, channel, encryptedAmount }
    }),
  )
  notes.addSeals(
    sealed.map(({ payee: { contractor, amount }, channel, encryptedAmount }) => ({
      payment: { batch, contractor, channel, amount },
      encryptedAmount,
    })),
  )
  return sealed
}

/** The lines of the payouts whose seals are this employer's own, for the amounts of the list, the relay's channels and its key. */
export async function recognize(
  { batch, payees, relay, notes }: Pick<RunRequest, 'batch' | 'payees' | 'relay' | 'notes'>,
  payouts: BatchState['payouts'],
): Promise<Line[]> {
  if (!relay) return []
  const keyId = await keyIdOf(relay.publicKey)
  const listed = new Map(payees.map((payee) => [payee.contractor, payee]))
  return payouts.flatMap((payout): Line[] => {
    const { id, contractorId: contractor, encryptedAmount = '' } = payout
    const payee = listed.get(contractor)
    const { spender: channel = '', kid } = readSeal(encryptedAmount) ?? {}
    if (!payee || kid !== keyId || !relay.channels.includes(channel)) return []
    const { amount, address } = payee
    if (payout.address !== address) return []
    if (!notes.recognizes({ batch, contractor, channel, amount }, encryptedAmount)) return []
    return [{ payout: id, contractor, address, channel, amount, encryptedAmount }]
  })
}

/** Keeps the seals that can be used, and replaces the others. Undefined if the batch has changed. */
export async function sealAgain(request: RunRequest, unpaid: BatchState['payouts']): Promise<Line[] | undefined> {
  const { client, batch, payees, say } = request
  const { usable, chosen } = await chooseChannels(request)
  const kept = (await recognize(request, unpaid)).filter(({ channel }) => usable.has(channel))
  const keptIds = new Set(kept.map(({ payout }) => payout))
  const others = unpaid.filter(({ id }) => !keptIds.has(id))
  if (others.length === 0) return kept
  say(`Sealing ${others.length} amount${others.length === 1 ? '' : 's'} again`)
  const listed = new Map(payees.map((payee) => [payee.contractor, payee]))
  const wanted = others.flatMap(({ contractorId }) => listed.get(contractorId) ?? [])
  if (wanted.length < others.length) return undefined
  const sealed = await sealAll(request, wanted, chosen)
  const replaced = sealed.map(
    ({ payee, ...rest }, index): Line => ({ ...payee, payout: others[index]?.id ?? '', ...rest }),
  )
  const seals = replaced.map(({ payout: payoutId, encryptedAmount }) => ({ payoutId, encryptedAmount }))
  try {
    for (const part of partsOf(seals)) {
      const body = { seals: part }
      await patiently(() => take(client.POST('/batches/{id}/seals', { params: { path: { id: batch } }, body })))
    }
  } catch (error) {
    if (error instanceof PayrollError && MAY_CHANGE.has(error.code)) return undefined
    throw error
  }
  return [...kept, ...replaced]
}

/** A payout was paid or claimed in the meantime, or a run is in progress. */
const MAY_CHANGE: ReadonlySet<string> = new Set(['payout-locked', 'run-unfinished'])
