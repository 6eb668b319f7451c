import { readPace } from '#lib/wallet/escrow.ts'
import { patiently } from './patience.ts'
import { type PayrollClient, take } from './payroll-client.ts'
import { RunError } from './run-error.ts'
import type { RunRequest } from './run-request.ts'

/** The terms of the relay, as the API has them. @throws PayrollError */
export const readTerms = (client: PayrollClient) => patiently(() => take(client.GET('/relay')))

/** A new delegation lasts this many margins beyond twice the time of its payouts: half an hour. */
const MARGINS = 10

/** What a payout takes, seconds: a ledger of its channel, and a proof. */
const PAYOUT_SECONDS = 15

const DAY_SECONDS = 86_400

/** The longest lifetime that the ledger gives an entry. */
const MOST_LEDGERS = 518_400

/** How many ledgers the service's latest one may differ from the client's: an hour on the test network. */
const MOST_APART = 720

/**
 * How many ledgers from now a delegation for so many payouts must last, and how many a new one lasts. The service names them; how long
 * the escrow is exposed is for the employer to decide.
 * @throws RunError `terms-absurd` if the delegation would last longer than twice what the payouts take, and a day; LedgerError
 */
export async function delegationLedgers(
  { client, deployment, maxLedgers }: Pick<RunRequest, 'client' | 'deployment' | 'maxLedgers'>,
  payouts: number,
): Promise<{ leastLedgers: number; ledgers: number }> {
  const { marginLedgers: margin, ledgersPerPayout, latestLedger: theirs } = await readTerms(client)
  const { latestLedger, secondsPerLedger } = await patiently(() => readPace(deployment))
  if (Math.abs(theirs - latestLedger) > MOST_APART) {
    throw new RunError('terms-absurd', `the service's latest ledger is ${theirs}, and your RPC's is ${latestLedger}`)
  }
  const own = Math.floor((2 * PAYOUT_SECONDS * payouts + DAY_SECONDS) / secondsPerLedger)
  const most = Math.min(MOST_LEDGERS, maxLedgers ?? own)
  const needed = ledgersPerPayout * payouts
  const wanted = margin + 2 * needed
  // The margin is minutes, and the relay may be busy with other runs or be restarted.
  const ledgers = Math.min(most, MARGINS * margin + 2 * needed)
  if (!(wanted <= most)) {
    const advice = maxLedgers === undefined ? 'allow more for a long honest queue (--max-ledgers)' : 'allow more'
    throw new RunError(
      'terms-absurd',
      `the service wants a delegation to last ${wanted} ledgers for ${payouts} payouts, more than ${most}: ${advice}`,
    )
  }
  // Half of the margin may pass while a command is interrupted and repeated, without a new delegation.
  return { leastLedgers: needed + Math.ceil(margin / 2), ledgers }
}
