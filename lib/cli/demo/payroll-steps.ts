import { createCipheriv, randomBytes } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import type { Keypair } from '@stellar/stellar-sdk'
import { deriveKey } from '#lib/auth/shared-secret.ts'
import { type components, type PayrollClient, pages, take } from '#lib/sdk/payroll-client.ts'
import { connectWallet } from '../client/wallet-session.ts'

type BatchProgress = components['schemas']['BatchProgress']

/** A person on the payroll: `pay` is test USDC as a decimal string. */
export interface Payee {
  name: string
  pay: string
}

/** Imports contractors in one request, and invites each. Resolves to their ids and the tokens of their invites. */
export async function importAndInvite(
  client: PayrollClient,
  payees: readonly Payee[],
): Promise<{ id: string; token: string }[]> {
  const rows = payees.map(({ name, pay }) => ({ name, amount: Number(pay) }))
  const { imported, errors } = await take(client.POST('/contractors/bulk', { body: { rows } }))
  if (errors.length > 0) throw new Error(`some contractors could not be imported: ${JSON.stringify(errors)}`)
  return await Promise.all(
    imported.map(async ({ id }) => {
      const { inviteUrl } = await take(client.POST('/contractors/{id}/invite', { params: { path: { id } } }))
      return { id, token: new URL(inviteUrl).pathname.split('/').at(-1) ?? '' }
    }),
  )
}

/** Signs in with the contractor's wallet and accepts the invite. Resolves to the status of the contractor's record. */
export async function acceptInvite(base: string, wallet: Keypair, token: string): Promise<string> {
  const client = await connectWallet(base, wallet)
  return (await take(client.POST('/invites/{token}/accept', { params: { path: { token } } }))).status
}

/** A batch with a payout for each contractor, locked. The amounts are sealed: only the employer can read them again. */
export async function prepareBatch(
  client: PayrollClient,
  name: string,
  payouts: readonly { contractorId: string; encryptedAmount: string }[],
): Promise<{ id: string; payoutIds: string[] }> {
  const { id } = await take(client.POST('/batches', { body: { name } }))
  const params = { path: { id } }
  const body = { instructions: [...payouts] }
  const instructed = await take(client.POST('/batches/{id}/instructions', { params, body }))
  if (instructed.errors.length > 0)
    throw new Error(`some contractors cannot be paid: ${JSON.stringify(instructed.errors)}`)
  await take(client.POST('/batches/{id}/ready', { params }))
  return { id, payoutIds: instructed.payouts.map((payout) => payout.id) }
}

/** Polls a batch until it ends, and reports each change. */
export async function followBatch(
  client: PayrollClient,
  id: string,
  tell: (progress: BatchProgress) => void,
): Promise<BatchProgress> {
  let lastReport = ''
  for (;;) {
    const progress = await take(client.GET('/batches/{id}/status', { params: { path: { id } } }))
    if (JSON.stringify(progress) !== lastReport) tell(progress)
    lastReport = JSON.stringify(progress)
    if (progress.status === 'completed' || progress.status === 'failed') return progress
    await setTimeout(250)
  }
}

/** The hash that the service stored for each payout of a batch. */
export async function readPayoutHashes(client: PayrollClient, id: string): Promise<Map<string, string | undefined>> {
  const hashes = new Map<string, string | undefined>()
  for await (const { payouts } of pages((query) => client.GET('/batches/{id}', { params: { path: { id }, query } }))) {
    for (const payout of payouts) hashes.set(payout.id, payout.txHash)
  }
  return hashes
}

/** Encrypts an amount with a key derived from the employer's viewing secret: AES-256-GCM, nonce first, base64. */
export function sealAmount(viewingSecret: bigint, amount: string): string {
  const key = deriveKey(viewingSecret.toString(16), 'payout amounts')
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  const sealed = Buffer.concat([nonce, cipher.update(amount.padStart(24)), cipher.final(), cipher.getAuthTag()])
  return sealed.toString('base64')
}
