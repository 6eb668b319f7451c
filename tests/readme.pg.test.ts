import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectPrinted, type Journey, startJourney } from './support/journey.ts'

let journey: Journey
beforeAll(async () => {
  // Without its relay, whose channels register with real proofs.
  journey = await startJourney(['README.md'], { BATCH_ENABLED: 'false' })
})
afterAll(() => journey?.close())

test('the shell block works as printed, with a real proof', async () => {
  expect(journey.blocks).toHaveLength(1)
  expectPrinted(journey.blocks, await journey.perform(journey.blocks.join('\n')))
})
