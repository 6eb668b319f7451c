import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { listChannels } from '#lib/dashboard/channels.ts'
import type { BatchWithPayouts } from '#lib/directory/batches/batches.ts'
import { runChore } from '#lib/server/maintenance.ts'
import { signElsewhere } from '../support/elsewhere.ts'
import { expectRunPaidOnce } from '../support/paid-once.ts'
import { openBackups } from './backup.ts'
import { openRelayService, type RelayService } from './relay-service.ts'
import { openRunFixture, type RunBatch, type RunFixture } from './run-fixture.ts'

/** The service that every test of a file restores. */
export let fixture: RelayService
export let runs: RunFixture
export let backups: Awaited<ReturnType<typeof openBackups>>

/** Opens them before the tests of the file that calls this, and closes them afterwards. */
export function openRestoredRuns(): void {
  beforeAll(async () => {
    fixture = await openRelayService({ channels: 2 })
    runs = openRunFixture(fixture)
    backups = await openBackups(fixture)
    await runs.announce()
  })
  afterAll(async () => {
    await backups?.close()
    await fixture?.close()
  })
  afterEach(() => fixture.ledger.proxy.rule(null))
}

export const query = (text: string, values: unknown[] = []) => backups.connection.query(text, values)
export const otherChannel = () => fixture.channels[1]?.publicKey() ?? ''
export const problemOf = async (address: string) =>
  (await listChannels(fixture.db, undefined, new Date())).find((channel) => channel.address === address)
    ?.reconcileProblem
export const readProblems = () => Promise.all([problemOf(runs.channel), problemOf(otherChannel())])
export const endsOf = ({ payouts }: BatchWithPayouts) => payouts.map(({ status, txHash }) => `${status} ${txHash}`)
export const statusesOf = async (batch: RunBatch) =>
  (await runs.read(batch)).payouts.map(({ status, error }) => error ?? status)

/** Uses up a sequence number of the channel that pays no run, without a relay. */
export const moveOther = () => signElsewhere(fixture.ledger.network, fixture.channel(otherChannel()))

/** Stops payments before a relay has looked at the ledger. */
export async function stopEarly(): Promise<void> {
  await runChore(fixture.running, 'channels')
  expect(await fixture.stop()).toMatchObject({ found: 0 })
}

type Moment = 'within the run' | 'before the run' | 'before the seals' | 'while a draft' | 'before the batch'

/**
 * A batch of two that a run has paid, in a database that is restored to a moment within that run, before it, or before the
 * batch; and the next batch, which has a payout to the first payee.
 */
export async function restoreRun(moment: Moment) {
  const isWithin = moment === 'within the run'
  const employer = await runs.employer()
  // Older payouts to the same payees, of other amounts, that stay unpaid.
  const older = await runs.batchOf(employer, [16n, 32n])
  const restoreOlder = moment === 'before the batch' ? await backups.backUp() : undefined
  const batch = await runs.batchOf(employer, [4n, 8n], { like: older })
  const { body: created } = await runs.ask<{ id: string }>(employer, 'POST', '/batches', { name: 'next' })
  const instructions = batch.payouts
    .slice(0, 1)
    .map(({ contractorId }) => ({ contractorId, encryptedAmount: 'to be sealed' }))
  await runs.ask(employer, 'POST', `/batches/${created.id}/instructions`, { instructions })
  await runs.ask(employer, 'POST', `/batches/${created.id}/ready`)
  await runs.delegate(employer, 20n)
  if (isWithin) expect(await runs.run(batch)).toMatchObject({ status: 200 })
  const seals = batch.payouts.map(({ id, encryptedAmount }) => ({ payoutId: id, encryptedAmount }))
  const areUnsealed = moment === 'before the seals'
  if (areUnsealed)
    await query(`UPDATE payouts SET encrypted_amount = 'none' WHERE batch = ANY ($1)`, [[batch.id, older.id]])
  const isDraft = moment === 'while a draft'
  const setStatus = async (status: string) => {
    await query(`UPDATE batches SET status = $2 WHERE id = $1`, [batch.id, status])
    await query(`UPDATE payouts SET status = $2 WHERE batch = $1`, [batch.id, status])
  }
  if (isDraft) await setStatus('draft')
  const restore = restoreOlder ?? (await backups.backUp())
  if (isDraft) await setStatus('ready')
  if (areUnsealed) await runs.ask(employer, 'POST', `/batches/${batch.id}/seals`, { seals })
  if (!isWithin) expect(await runs.run(batch)).toMatchObject({ status: 200 })
  {
    await using _host = await fixture.relay()
    await expectRunPaidOnce(runs, batch, [4n, 8n])
  }
  const paid = (await runs.read(batch)).payouts.map(({ txHash }) => txHash)
  const resumed = await restore()
  const status = isDraft ? 'draft' : 'ready'
  if (!restoreOlder) expect(await statusesOf(batch)).toEqual([status, status])
  return { batch, employer, paid, older, next: { id: created.id, employer }, resumed }
}

export const asPaid = (hashes: readonly (string | undefined)[]) => hashes.map((hash) => `paid ${hash}`)
