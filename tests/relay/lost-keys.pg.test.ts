import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Transfer, TransferStatus } from '#drizzle/schema/transfers.ts'
import { endOverdueLines } from '#lib/relay/chores.ts'
import type { LeasedLine } from '#lib/relay/lease.ts'
import type { LineId } from '#lib/transfers/line.ts'
import { type LineFixture, NOW, openLineFixture } from './line-fixture.ts'

const DAY = 86_400_000
const LOST = 'a key that is lost'

let fixture: LineFixture
beforeAll(async () => {
  fixture = await openLineFixture()
})
afterAll(() => fixture?.close())

/** A line of a key that no relay has any more, as a host with that key has leased it on a channel that other hosts have. */
async function leaseLost(): Promise<LeasedLine> {
  await fixture.makeChannels('A', 'B')
  const line = await fixture.makeLine(LOST)
  return { ...(await fixture.lineOf(line)), channel: 'A' }
}

async function recordLost(): Promise<{ line: LeasedLine; transfer: Transfer }> {
  const line = await leaseLost()
  return { line, transfer: await fixture.record(line, `transfer of ${line.job}`) }
}

/** Runs the chore of a service with another key, this many milliseconds after the line was queued. */
const doChores = (after: number) =>
  endOverdueLines({ ...fixture.relayWith('A'), now: () => new Date(NOW.getTime() + after) })

const stateOf = async (line: LineId) => {
  const { outcome, hash, error } = await fixture.lineOf(line)
  return { outcome, hash, error, job: (await fixture.jobOf(line.job))?.status }
}

describe('a line whose relay key is lost after its transfer was recorded', () => {
  test('is paid when its transfer has succeeded', async () => {
    const { line, transfer } = await recordLost()
    await doChores(0)
    expect(await stateOf(line)).toMatchObject({ outcome: null, job: 'running' })
    await fixture.settle(transfer, 'succeeded')
    const hash = `transfer of ${line.job}`
    expect(await stateOf(line)).toEqual({ outcome: 'paid', hash, error: null, job: 'completed' })
  })

  test('ends as unknown when its transfer is unknown', async () => {
    const { line, transfer } = await recordLost()
    await fixture.settle(transfer, 'unknown')
    expect(await stateOf(line)).toMatchObject({ outcome: 'unknown', job: 'failed' })
  })

  const end = (status: Exclude<TransferStatus, 'open'>) => async (line: LeasedLine) =>
    await fixture.settle(await fixture.record(line), status)
  test.each([
    ['has failed', end('failed')],
    ['has expired', end('expired')],
    ['was never recorded', async () => undefined],
  ])('fails a day after it was queued when its transfer %s', async (_, prepare) => {
    const line = await leaseLost()
    await prepare(line)
    await doChores(DAY - 1)
    expect(await stateOf(line)).toMatchObject({ outcome: null, job: 'running' })
    await doChores(DAY + 1)
    const error = 'too-late'
    expect(await stateOf(line)).toMatchObject({ outcome: 'failed', error, job: 'failed' })
  })

  test('does not end while its transfer is open, even after a day', async () => {
    const { line, transfer } = await recordLost()
    await doChores(2 * DAY)
    expect(await stateOf(line)).toMatchObject({ outcome: null, job: 'running' })
    await fixture.settle(transfer, 'succeeded')
    expect(await stateOf(line)).toMatchObject({ outcome: 'paid' })
  })

  test('keeps no channel from the lines of other keys once its transfer has ended', async () => {
    const { line, transfer } = await recordLost()
    const waiting = await fixture.makeLine()
    expect(await fixture.lease('A')).toBeUndefined()
    await fixture.settle(transfer, 'expired')
    expect(await fixture.lease('A')).toMatchObject(waiting)
    expect(await stateOf(line)).toMatchObject({ outcome: null })
  })
})
