import { formatUnits } from '#lib/text/money.ts'
import { ensureEscrow, readOwnDelegations, revokeAll } from '#lib/wallet/escrow.ts'
import { signManifest } from '#lib/wallet/manifest.ts'
import { signerOf } from '#lib/wallet/signer.ts'
import { type BatchState, readBatch } from './payees.ts'
import { type PayrollClient, PayrollError, take } from './payroll-client.ts'
import { RunError } from './run-error.ts'
import { manifestOf } from './run-manifest.ts'
import type { Line, RunRequest } from './run-request.ts'
import { makeReady, readTerms, recognize, sealAgain } from './run-seals.ts'
import { sponsorCall } from './sponsored-call.ts'

/** How a run ended: how many payouts of the batch are paid, of how many that are not canceled. */
export interface RunResult {
  paid: number
  payouts: number
}

/**
 * Seals, delegates, signs, starts a run and follows it. Each step first reads the state of the service, of the
 * ledger and of its own seals, so that a second call after an interruption continues without paying or delegating twice.
 * @throws RunError; WalletError `relay-unknown` before anything is sealed or delegated; PayrollError
 */
export async function runBatch(request: RunRequest): Promise<RunResult> {
  const { client, batch } = request
  await makeReady(request)
  for (let attempt = 1; ; attempt += 1) {
    const { payouts } = await readBatch(client, batch)
    const isLeft = payouts.some(({ status }) => status === 'ready' || status === 'failed')
    if (!isLeft) break
    if (await start(request, payouts)) break
    if (attempt === STARTS) throw new RunError('not-started', 'the batch could not be started')
  }
  await follow(request)
  return await finish(request)
}

/**
 * How often the progress is read (ms), and how many times a failed batch may stay failed while its channels are taken.
 */
const POLL_MS = 500
const STILL_POLLS = 120

/** Shows the progress of the batch until it ends. A failed batch stays failed until its next run pays something. */
async function follow({ client, batch, seals, say }: RunRequest): Promise<void> {
  let last = ''
  for (let still = 0; still < STILL_POLLS; still += 1) {
    const progress = await take(client.GET('/batches/{id}/status', { params: { path: { id: batch } } }))
    const { status, settledCount, failedCount, payoutCount } = progress
    const line = `${status}: ${settledCount} of ${payoutCount} paid${failedCount > 0 ? `, ${failedCount} failed` : ''}`
    if (line !== last) say(line)
    if (status === 'completed') return
    if (status === 'failed') {
      const own = new Set(seals.channelsOf(batch))
      const { channels } = await readTerms(client)
      if (channels.every(({ address, available }) => available || !own.has(address))) return
    }
    if (line !== last || status !== 'failed') still = 0
    last = line
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

/** A new delegation lasts this many margins beyond twice the time of its payouts: half an hour. */
const MARGINS = 10

/** How many times the terms may change while a run is being prepared. */
const STARTS = 3

const submitTo = (client: PayrollClient) => (signedXdr: string) => sponsorCall(client, signedXdr)

/** Starts the run, after seals and delegations are in place. False if something has changed in the meantime. */
async function start(request: RunRequest, payouts: BatchState['payouts']): Promise<boolean> {
  const { client, deployment, holder, batch, say } = request
  const unpaid = payouts.filter(({ status }) => status === 'ready' || status === 'failed')
  const sealed = unpaid.flatMap((payout) => recognize(request, payout) ?? [])
  // While a run is unfinished, nothing may be sealed or delegated again: it needs both. The service says whether one is.
  if (sealed.length === unpaid.length && (await tryStart(request, sealed))) return true
  const lines = await sealAgain(request, unpaid)
  if (!lines) return false
  const { marginLedgers: margin, ledgersPerPayout } = await readTerms(client)
  for (const [channel, part] of Map.groupBy(lines, (line) => line.channel)) {
    const needed = ledgersPerPayout * part.length
    const escrow = {
      spender: channel,
      amount: part.reduce((sum, { amount }) => sum + amount, 0n),
      // Half of the margin may pass while a command is interrupted and repeated, without a new delegation.
      leastLedgers: needed + Math.ceil(margin / 2),
      // The margin is minutes, and the relay may be busy with other runs or be restarted.
      ledgers: MARGINS * margin + 2 * needed,
    }
    await ensureEscrow(deployment, holder, escrow, { submit: submitTo(client), say })
  }
  say(`Starting the run of batch ${batch}`)
  return await tryStart(request, lines)
}

/** Posts the signed manifest. False if the service finds that something is not in place. */
async function tryStart(request: RunRequest, lines: readonly Line[]): Promise<boolean> {
  const { client, deployment, holder, batch, say } = request
  const manifest = await manifestOf(request, lines)
  if (!manifest) return false
  const escrows = await readOwnDelegations(
    deployment,
    holder,
    manifest.delegations.map(({ channel }) => channel),
  )
  const isShort = escrows.delegations.some(({ spender, left = 0n }) => {
    const needed = lines.filter(({ channel }) => channel === spender).reduce((sum, { amount }) => sum + amount, 0n)
    return left < needed
  })
  // A run in progress may have spent part of the escrow. If there is none, this run would fail, so an empty manifest
  // only asks.
  const signed = isShort ? { ...manifest, payouts: [] } : manifest
  const signature = await signManifest(signerOf(holder.signer), signed)
  try {
    await take(client.POST('/batches/{id}/run', { params: { path: { id: batch } }, body: { signature } }))
    return true
  } catch (error) {
    if (!(error instanceof PayrollError) || error.code !== 'run-not-ready') throw error
    if (!isShort) say(`Not ready yet: ${JSON.stringify(error.details.errors ?? error.message)}`)
    return false
  }
}

/** Returns the rest, and reports the payments. */
async function finish({ deployment, client, holder, batch, seals, revokes, say }: RunRequest): Promise<RunResult> {
  const { payouts } = await readBatch(client, batch)
  for (const { id, status, error } of payouts) if (status === 'failed') say(`Payout ${id} failed: ${error}`)
  if (revokes) {
    const returned = await revokeAll(deployment, holder, seals.channelsOf(batch), submitTo(client))
    say(`Revoked: ${formatUnits(returned)} returned`)
  }
  const paid = payouts.filter(({ status }) => status === 'paid').length
  const active = payouts.filter(({ status }) => status !== 'canceled')
  const failed = payouts.filter(({ status }) => status === 'failed').length
  if (failed > 0)
    throw new RunError(
      'payouts-failed',
      `${failed} of ${active.length} payouts failed: run the batch again to pay them`,
    )
  return { paid, payouts: active.length }
}
