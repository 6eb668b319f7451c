import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectPrinted, type Journey, startJourney, WITHOUT_NPM } from './support/journey.ts'

/** Some twenty commands, six of them with real proofs, take minutes on a machine that is busy with much else. */
const LONGEST_JOURNEY_MS = 20 * 60_000

let journey: Journey
beforeAll(async () => {
  journey = await startJourney(['README.md', 'docs/walkthrough.md', 'docs/runs.md'])
}, LONGEST_JOURNEY_MS)
afterAll(() => journey?.close())

test('the shell block of the guide to runs continues the walkthrough, and works as printed', {
  timeout: LONGEST_JOURNEY_MS,
}, async () => {
  const [readme = '', firstBatch = '', ...others] = journey.blocks
  // The walkthrough's other blocks are run with the walkthrough.
  const stepByStep = others.at(-1) ?? ''
  expect(stepByStep).toContain('wallet -- delegate')
  // A reader does not get this far before the channels have registered, each with a real proof. The test might.
  const relay = `curl -s localhost:${journey.port}/api/relay -H "$AUTH"`
  const untilAvailable = `until ${relay} | grep -q '"available":true'; do sleep 1; done`
  const stdout = await journey.perform([WITHOUT_NPM, readme, firstBatch, untilAvailable, stepByStep].join('\n'))
  expectPrinted([readme, firstBatch, stepByStep], stdout, 14)
})
