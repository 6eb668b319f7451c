import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openTestNetwork } from '#lib/cli/client/participants.ts'
import { emptyDatabase } from '../support/database.ts'
import { freePort } from '../support/port.ts'
import { startProgram } from '../support/program.ts'
import { expectContinuation, expectPages } from './continuation.ts'
import { RELEASES, readUnfinished, restoreRows, unpackDatabase, unpackLedger } from './unpacked.ts'

const password = 'a password for the tests'

let directory: string
let base: string
let variables: Record<string, string>
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'payroll-upgrade-'))
  const [port, devnetPort] = [await freePort(), await freePort()]
  base = `http://localhost:${port}`
  variables = {
    ...{ PORT: String(port), DEVNET_PORT: String(devnetPort), RELAY_PORT: '0', PUBLIC_URL: base },
    ...{ DATA_DIR: directory, DEVNET_PROOFS: 'stand-in', DEVNET_CLOSE_MS: '200', OPERATOR_PASSWORD: password },
  }
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const placeOf = (version: string) => ({
  base,
  deploymentUrl: `http://localhost:${variables.DEVNET_PORT}/deployment.json`,
  unfinished: readUnfinished(version),
})

describe.each(RELEASES)('the data of %s', (version) => {
  test('goes on in a DATA_DIR', async () => {
    unpackLedger(version, directory)
    await unpackDatabase(version, directory)
    const program = await startProgram(base, variables)
    try {
      await expectContinuation(placeOf(version))
      await expectPages(placeOf(version), password)
    } finally {
      await program.kill()
    }
  })

  test('goes on in a PostgreSQL, with counters that agree with its rows and with the ledger', async () => {
    unpackLedger(version, directory)
    const database = await emptyDatabase()
    await restoreRows(version, database.url)
    const program = await startProgram(base, {
      ...variables,
      DATABASE_URL: database.url,
      SESSION_SECRET: 'a secret for tests, long enough for HS256',
    })
    try {
      await expectContinuation(placeOf(version))
      await expectPages(placeOf(version), password)
      await expectAgreement(database.url)
    } finally {
      await program.kill()
      await database.drop()
    }
  })
})

/** Each query returns the rows that contradict each other: none. */
const CONTRADICTIONS = {
  batches: `SELECT batches.id FROM batches LEFT JOIN payouts ON payouts.batch = batches.id GROUP BY batches.id
    HAVING payout_count <> count(*) FILTER (WHERE payouts.status <> 'canceled')
      OR settled_count <> count(*) FILTER (WHERE payouts.status = 'paid')
      OR failed_count <> count(*) FILTER (WHERE payouts.status = 'failed')`,
  organisations: `SELECT id FROM organisations WHERE
    batch_count <> (SELECT count(*) FROM batches WHERE organisation = organisations.id) OR
    contractor_count <> (SELECT count(*) FROM contractors WHERE organisation = organisations.id AND deleted_at IS NULL)`,
  // Each settled transfer of a user counts once: over all hours, and for its organisation in the hour of its record.
  settlements: `SELECT status FROM settlement_counts WHERE hour = 'ever' GROUP BY status
    HAVING (sum(count), sum(fees)) IS DISTINCT FROM (SELECT (count(*)::numeric, coalesce(sum(fee_charged), 0)::numeric)
      FROM transfers WHERE transfers.status = settlement_counts.status AND kind <> 'deposit'
      AND NOT (kind IN ('register', 'merge') AND sponsor IS NULL))`,
  costs: `SELECT organisation FROM organisation_costs LEFT JOIN organisation_hours USING (organisation)
    GROUP BY organisation, month_transfers, month_failed, month_fees
    HAVING month_transfers <> coalesce(sum(transfers), 0) OR month_failed <> coalesce(sum(failed), 0)
      OR month_fees <> coalesce(sum(fees), 0)`,
  floats: `SELECT sponsor FROM sponsor_floats WHERE held <> (SELECT coalesce(sum(bid), 0) FROM transfers
    WHERE transfers.sponsor = sponsor_floats.sponsor AND status = 'open')`,
  payouts: `SELECT id FROM payouts WHERE status = 'paid'
    AND NOT EXISTS (SELECT FROM transfers WHERE payout = payouts.id AND status = 'succeeded' AND hash = tx_hash)`,
}

async function expectAgreement(url: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    for (const [name, query] of Object.entries(CONTRADICTIONS)) {
      expect([name, (await client.query(query)).rows]).toEqual([name, []])
    }
    const network = await openTestNetwork(placeOf(RELEASES[0] ?? '').deploymentUrl)
    const { rows } = await client.query(
      "SELECT hash, fee_charged FROM transfers WHERE status = 'succeeded' AND sponsor IS NOT NULL",
    )
    const onLedger: string[] = []
    for (const { hash, fee_charged } of rows) {
      const found = await network.rpc.getTransaction(hash)
      // The seeded hashes are fictional.
      if (found.status !== 'SUCCESS') continue
      onLedger.push(hash)
      expect([hash, found.resultXdr.feeCharged]).toEqual([hash, BigInt(fee_charged)])
    }
    // The demo's payments, and those of the story.
    expect(onLedger.length).toBeGreaterThan(20)
  } finally {
    await client.end()
  }
}
