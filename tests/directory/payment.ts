import type { BatchWithPayouts } from '#lib/directory/batches/batches.ts'
import { buildTransfer } from '#lib/wallet/calls.ts'
import { type Employer, openEmployer } from '../support/fixtures.ts'
import type { SignedInPayer, TestService } from '../support/test-service.ts'

/** A new employer with batches for one contractor at `address`, and a transfer to that contractor, ready to be posted. */
export async function preparePayment(
  service: TestService<'embedded'>,
  address: string,
  { batches = 1 }: { batches?: number } = {},
) {
  const wallet = await service.employ()
  const employer = await openEmployer(service, wallet.address)
  const payee = await employer.engage('a payee', { address })
  const prepared: BatchWithPayouts[] = []
  for (let index = 0; index < batches; index += 1) prepared.push(await employer.prepare([payee]))
  const [batch] = prepared
  if (!batch) throw new Error('no batch')
  const payment = await buildPayment(service, wallet, address)
  return { wallet, employer, payee, batch, batches: prepared, ...payment, now: () => findBatch(employer, batch) }
}

export async function buildPayment(
  service: TestService<'embedded'>,
  wallet: SignedInPayer,
  to: string,
  amount = 5_0000000n,
) {
  const { hash, signedXdr } = await buildTransfer(service.ledger.network, wallet, {
    to,
    amount,
    opening: wallet.opening,
  })
  const post = (more: object = {}) => service.post(wallet, { signedXDR: signedXdr, ...more })
  return { hash, signedXdr, post }
}

export async function findBatch(employer: Employer, { id }: { id: string }): Promise<BatchWithPayouts> {
  return (await employer.ask<BatchWithPayouts>('GET', `/batches/${id}`)).body
}
