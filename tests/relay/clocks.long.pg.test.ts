import { expect, test } from 'vitest'
import { expectJobPaidOnce, quotaOf } from '../support/paid-once.ts'
import { freePort } from '../support/port.ts'
import { startChild } from './relay-child.ts'
import { serveJobs } from './relay-service.ts'

const fixture = await serveJobs({ channels: 2 })

test.each([
  ['slow', -300, 'behind'],
  ['fast', 300, 'ahead of'],
] as const)(
  'a relay whose clock is 300 s %s pays each line with its first transfer, and reports the difference',
  async (_, shift, direction) => {
    const port = await freePort()
    const variables = { ...fixture.variables, RELAY_PORT: `${port}`, CLOCK_SHIFT_MS: `${shift * 1000}` }
    const relay = await startChild(variables)
    try {
      const { client, payee } = await fixture.engaged()
      const job = await fixture.begin(client, 1, 2, 4)
      await expectJobPaidOnce(fixture, client, job, [payee, 7n])
      expect(await quotaOf(fixture, client.address)).toMatchObject({ count: 3 })
      const health = (await (await fetch(`http://localhost:${port}/health`)).json()) as {
        ok: boolean
        clockOffsetSeconds: number
        problems: string[]
      }
      expect(health.ok).toBe(false)
      expect(Math.sign(health.clockOffsetSeconds)).toBe(Math.sign(shift))
      const problem = `this host's clock is ${Math.abs(health.clockOffsetSeconds)} s ${direction} the ledger's: synchronise it`
      expect(health.problems).toEqual([problem])
      expect(relay.log).toContainEqual(
        expect.objectContaining({ event: 'clock', level: 'error', problem: expect.stringContaining(direction) }),
      )
    } finally {
      await relay.kill()
    }
  },
)
