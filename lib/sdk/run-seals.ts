import { keyIdOf, readSeal } from '#lib/wallet/seal.ts'
import { sealOwnPayout } from '#lib/wallet/seal-key.ts'
import { requireTrusted } from '#lib/wallet/trusted-relay.ts'
import { type EncryptedAmount, partsOf } from './batch-ready.ts'
import { patiently } from './patience.ts'
import type { BatchState, Payee } from './payees.ts'
import { PayrollError, take } from './payroll-client.ts'
import { findTaken } from './run-delegations.ts'
import { RunError } from './run-error.ts'
import type { Line, RunRequest } from './run-request.ts'
import { readTerms } from './run-terms.ts'

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

/** Seals the amounts of payees who have no payout yet. */
export async function sealMissing(request: RunRequest, missing: readonly Payee[]): Promise<EncryptedAmount[]> {
  const { chosen } = await chooseChannels(request)
  return await sealAll(request, missing, chosen)
}

/** Seals amounts for the channels in turn, and records the seals before anyone else has them. */
async function sealAll(
  { batch, relay, notes, holder }: RunRequest,
  payees: readonly Payee[],
  channels: readonly string[],
): Promise<{ payee: Payee; channel: string; encryptedAmount: string }[]> {
  const { publicKey } = await requireTrusted(relay, { channels })
  const sealed = await Promise.all(
    payees.map(async (payee, index) => {
      const channel = channels[index % channels.length] ?? ''
      const { contractor, amount } = payee
      const binding = { batch, contractor, spender: channel }
      const encryptedAmount = await sealOwnPayout(holder, publicKey, binding, amount)
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
