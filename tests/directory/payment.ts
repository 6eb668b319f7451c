import type { BatchWithPayouts } from '#lib/directory/batches.ts'
import { buildTransfer } from '#lib/wallet/calls.ts'
import { type Employer, openEmployer } from '../support/fixtures.ts'
import type { SignedInPayer } from '../support/ground.ts'
import type { Town } from '../support/town.ts'

/** A new employer with batches for one contractor at `address`, and a transfer to that contractor, ready to be posted. */
export async function preparePayment(town: Town, address: string, { batches = 1 }: { batches?: number } = {}) {
  const wallet = await town.employ()
  const office = await openEmployer(town, wallet.address)
  const payee = await office.engage('a payee', { address })
  const made: BatchWithPayouts[] = []
  for (let index = 0; index < batches; index += 1) made.push(await office.prepare([payee]))
  const [batch] = made
  if (!batch) throw new Error('no batch')
  const payment = await buildPayment(town, wallet, address)
  return { wallet, office, payee, batch, batches: made, ...payment, now: () => findBatch(office, batch) }
}

export async function buildPayment(town: Town, wallet: SignedInPayer, to: string, amount = 5_0000000n) {
  const { hash, signedXdr } = await buildTransfer(town.network, wallet, { to, amount, opening: wallet.opening })
  const post = (more: object = {}) => town.post(wallet, { signedXDR: signedXdr, ...more })
  return { hash, signedXdr, post }
}

export async function findBatch(office: Employer, { id }: { id: string }): Promise<BatchWithPayouts> {
  return (await office.ask<BatchWithPayouts>('GET', `/batches/${id}`)).body
}
