import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectPrinted, type Journey, startJourney } from './support/journey.ts'

/** The service and eight commands start as separate processes. */
const LIMIT_MS = 600_000

let journey: Journey
beforeAll(async () => {
  // Without its relay, whose channels register with real proofs.
  journey = await startJourney(['README.md'], { BATCH_ENABLED: 'false' })
}, LIMIT_MS)
afterAll(() => journey?.close())

test('the shell block works as printed, with a real proof', { timeout: LIMIT_MS }, async () => {
  expect(journey.blocks).toHaveLength(1)
  expectPrinted(journey.blocks, await journey.perform(journey.blocks.join('\n')), 4)
})
