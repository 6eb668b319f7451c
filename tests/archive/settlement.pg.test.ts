import { expect, test } from 'vitest'
import { openArchive } from '#lib/archive/history.ts'
import { enrol } from '#lib/cli/client/participants.ts'
import { perProcess } from '#lib/observability/per-process.ts'
import { preparePayment } from '../directory/payment.ts'
import { openTestService } from '../support/test-service.ts'

test('ingests after a settlement, without waiting for the chore', async () => {
  const lastRound = perProcess('archive round', (): { at?: number } => ({}))
  delete lastRound.at
  const service = await openTestService({ ledger: 'embedded', choresEveryMs: 0 })
  try {
    const payee = await enrol(service.ledger.network)
    const { post } = await preparePayment(service, payee.signer.publicKey())
    expect(await post()).toMatchObject({ status: 200 })
    const { token } = service.ledger.network
    await expect
      .poll(async () => await openArchive(service.db, token))
      .toMatchObject({ firstLedger: expect.any(Number) })
  } finally {
    delete lastRound.at
    await service.close()
  }
})
