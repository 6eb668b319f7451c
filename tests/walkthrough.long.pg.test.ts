import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectPrinted, type Journey, startJourney, WITHOUT_NPM } from './support/journey.ts'

/**
 * The ledgers that the RPC keeps, and how fast they close (ms): more than a minute and a half, while the archive may lag by
 * 50 s. The relay expects one ledger a second: if they closed faster, a delegation would end before its payout is proved.
 */
const [HISTORY, CLOSE_MS] = [100, 1000]

/** Some thirty commands, seven of them with real proofs, take minutes on a machine that is busy with much else. */
const LONGEST_JOURNEY_MS = 30 * 60_000

let journey: Journey
beforeAll(async () => {
  // The RPC drops the first payments during the journey.
  journey = await startJourney(['README.md', 'docs/walkthrough.md', 'docs/disclosure.md'], {
    DEVNET_CLOSE_MS: String(CLOSE_MS),
    DEVNET_HISTORY_LEDGERS: String(HISTORY),
  })
})
afterAll(() => journey?.close())

/** Shell lines that print a number of the RPC's health, such as oldestLedger. */
const health = (field: string) =>
  `curl -s localhost:${journey.devnetPort}/rpc -d '{"jsonrpc":"2.0","id":1,"method":"getHealth"}' -H 'Content-Type: application/json' | grep -o '"${field}":[0-9]*' | cut -d: -f2`

/** Not in the printed commands: the bank asks only after the RPC has dropped the first payment. */
function withPassingMonths([readme = '', ...walkthrough]: string[]): string {
  const bank = '# the bank: '
  const wait = `until [ "$(${health('oldestLedger')})" -gt "$FIRST" ]; do sleep 1; done\n`
  const lines = walkthrough.join('\n').replace(bank, () => `${wait}${bank}`)
  expect(lines).toContain(wait)
  return [readme, `FIRST=$(${health('latestLedger')})`, lines].join('\n')
}

test('the shell blocks of the guides continue the README, and work as printed', {
  timeout: LONGEST_JOURNEY_MS,
}, async () => {
  const stdout = await journey.perform(WITHOUT_NPM + withPassingMonths(journey.blocks))
  expectPrinted(journey.blocks, stdout, 6)
  // The first month is in the archive only.
  expect(stdout).toMatch(/verified .* 92\.5000000\n.*\n.*read from http:\S+\/api\/archive\n/)
})
