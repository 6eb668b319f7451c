import { createCipheriv, hkdfSync, randomBytes } from 'node:crypto'
import type { Keypair } from '@stellar/stellar-sdk'
import { z } from 'zod'
import { instructedShape } from '#lib/directory/batch-instructions.ts'
import { type BatchProgress, batchProgressShape, batchShape, batchWithPayoutsShape } from '#lib/directory/batches.ts'
import { contractorShape } from '#lib/directory/contractors/schema.ts'
import type { PayrollClient } from '../payroll-client.ts'

const IMPORTED = z.object({ imported: z.array(contractorShape), errors: z.array(z.unknown()) })
const INVITED = z.object({ inviteUrl: z.string() })

/** Somebody on the payroll: `pay` is test USDC as a decimal string. */
export interface Payee {
  name: string
  pay: string
}

/** Imports contractors in one request, and invites each. Resolves to their ids and the tokens of their invites. */
export async function importAndInvite(
  client: PayrollClient,
  session: string,
  payees: readonly Payee[],
): Promise<{ id: string; token: string }[]> {
  const rows = payees.map(({ name, pay }) => ({ name, amount: Number(pay) }))
  const { imported, errors } = await client.ask(IMPORTED, session, '/contractors/bulk', { rows })
  if (errors.length > 0) throw new Error(`not everybody could be imported: ${JSON.stringify(errors)}`)
  return await Promise.all(
    imported.map(async ({ id }) => {
      const { inviteUrl } = await client.ask(INVITED, session, `/contractors/${id}/invite`, {})
      return { id, token: new URL(inviteUrl).pathname.split('/').at(-1) ?? '' }
    }),
  )
}

/** A contractor signs in with the own wallet and accepts. Resolves to the status of the record. */
export async function acceptInvite(client: PayrollClient, wallet: Keypair, token: string): Promise<string> {
  const session = await client.signIn(wallet)
  return (await client.ask(contractorShape, session, `/invites/${token}/accept`, {})).status
}

/** A batch with a payout for each contractor, locked. The amounts are sealed: only the employer can read them again. */
export async function prepareBatch(
  client: PayrollClient,
  session: string,
  name: string,
  payouts: readonly { contractorId: string; encryptedAmount: string }[],
): Promise<{ id: string; payoutIds: string[] }> {
  const { id } = await client.ask(batchShape, session, '/batches', { name })
  const instructed = await client.ask(instructedShape, session, `/batches/${id}/instructions`, {
    instructions: payouts,
  })
  if (instructed.errors.length > 0) throw new Error(`not everybody could be paid: ${JSON.stringify(instructed.errors)}`)
  await client.ask(batchShape, session, `/batches/${id}/ready`, {})
  return { id, payoutIds: instructed.payouts.map((payout) => payout.id) }
}

/** Polls a batch until it has ended, and tells each change. */
export async function followBatch(
  client: PayrollClient,
  session: string,
  id: string,
  tell: (progress: BatchProgress) => void,
): Promise<BatchProgress> {
  let told = ''
  for (;;) {
    const progress = await client.ask(batchProgressShape, session, `/batches/${id}/status`)
    if (JSON.stringify(progress) !== told) tell(progress)
    told = JSON.stringify(progress)
    if (progress.status === 'completed' || progress.status === 'failed') return progress
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
}

/** The hash that the service keeps for each payout of a batch. */
export async function readPayoutHashes(
  client: PayrollClient,
  session: string,
  id: string,
): Promise<Map<string, string | undefined>> {
  const { payouts } = await client.ask(batchWithPayoutsShape, session, `/batches/${id}`)
  return new Map(payouts.map((payout) => [payout.id, payout.txHash]))
}

/** Seals an amount with a key that comes from the employer's viewing secret: AES-256-GCM, nonce first, base64. */
export function sealAmount(viewingSecret: bigint, amount: string): string {
  const key = new Uint8Array(hkdfSync('sha256', viewingSecret.toString(16), '', 'payout amounts', 32))
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  const sealed = Buffer.concat([nonce, cipher.update(amount.padStart(24)), cipher.final(), cipher.getAuthTag()])
  return sealed.toString('base64')
}
