import { eq, isNotNull } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { auditLog } from '#drizzle/schema/audit.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import { enrol } from '#lib/cli/client/participants.ts'
import { preparePayment } from '../directory/payment.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

let service: TestService<'embedded'>
beforeAll(async () => {
  service = await openTestService({ ledger: 'embedded' })
})
afterAll(() => service.close())

test('stores the id of a request with the transfer and the entries that it writes, and none with its settlement', async () => {
  const payee = (await enrol(service.ledger.network)).signer.publicKey()
  const { wallet, signedXdr, hash } = await preparePayment(service, payee)
  const headers = { 'X-Request-Id': 'payroll-2026-03.ada' }
  const { status } = await service.ask('POST', '/transfer', {
    session: wallet.session,
    body: { signedXDR: signedXdr },
    headers,
  })
  expect(status).toBe(200)
  const [transfer] = await service.db.select().from(transfers).where(isNotNull(transfers.payout))
  expect(transfer).toMatchObject({ status: 'succeeded', requestId: 'payroll-2026-03.ada' })
  const entries = await service.db
    .select({ action: auditLog.action, subject: auditLog.subjectId })
    .from(auditLog)
    .where(eq(auditLog.requestId, 'payroll-2026-03.ada'))
    .orderBy(auditLog.sequence)
  expect(entries).toEqual([
    { action: 'batch.started', subject: expect.any(String) },
    { action: 'transfer.sponsored', subject: hash },
  ])
})
