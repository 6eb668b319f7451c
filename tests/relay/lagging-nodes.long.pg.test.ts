import { test } from 'vitest'
import { prover } from '#lib/prover/stand-in.ts'
import { catchUp, enrolUnevenly, LAG } from '../support/lagging-nodes.ts'
import { expectJobPaidOnce } from '../support/paid-once.ts'
import { serveJobs } from './relay-service.ts'

const fixture = await serveJobs({ channels: 2, prepared: 0, lag: LAG })

test('prepares its channels and pays each line once while one node of two lags', async () => {
  const { network } = fixture.ledger
  await using _relay = await fixture.relay({ prover, prepares: true })
  for (let round = 0; round < 2; round += 1) {
    const client = await fixture.client()
    const payee = await enrolUnevenly(network)
    await fixture.hire(client, [payee.signer.publicKey()])
    const jobId = await fixture.begin(client, 1, 2, 4, 8, 16, 32)
    await fixture.ended(client, jobId)
    await catchUp(network)
    await expectJobPaidOnce(fixture, client, jobId, [payee, 63n])
  }
})
