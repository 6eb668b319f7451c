import { z } from 'zod'
import type { Session } from '#lib/auth/session.ts'
import { Refusal, type RefusalCode, SPONSOR_REASONS } from '#lib/refusal/refusal.ts'
import type { Service } from '#lib/server/services.ts'
import { bodyWith } from '#lib/text/plain-text.ts'
import { decodeInner } from '#lib/transfers/policy.ts'
import type { ClientTerms } from '#lib/transfers/record.ts'
import { sponsorTransfer, type TransferResult } from '#lib/transfers/submit.ts'
import { EXAMPLE } from './examples.ts'
import { inGroup, operation } from './operation.ts'

export const transferShape = z.object({
  hash: z.string().meta({ description: 'hash of the applied transaction, 64 hex digits' }),
  status: z.literal('SUCCESS'),
})

/**
 * The account whose transfers may be sponsored: only a wallet session has one. Can be checked before the body is read.
 * @throws Refusal `wallet-required`
 */
export function requirePayer(session: Session): string {
  if (session.kind === 'ledger') return session.sub
  throw new Refusal('wallet-required')
}

/** The body of a request for sponsorship. */
export const signedRequest = bodyWith('signedXDR', 'the signed inner transaction, base64 XDR')

const transferRequest = signedRequest.extend({
  payoutId: z.string('must be a string').optional().meta({
    description: 'the payout that the transfer pays; without it, the service finds one that fits',
    'x-extension': true,
  }),
})

export const TRANSFER_REFUSALS: readonly RefusalCode[] = [
  ...(['signed-xdr-invalid', 'source-mismatch', 'wallet-required', 'sponsor-not-configured'] as const),
  ...(Object.keys(SPONSOR_REASONS) as RefusalCode[]),
  ...(['transfer-open', 'transfer-refused', 'transfer-replaced', 'transfer-failed'] as const),
  ...(['transfer-expired', 'transfer-unknown'] as const),
]

/** Sponsors the transaction that a payer has signed, and waits for it. `readTerms` runs once the transaction is decoded. */
export async function sponsorSigned(
  { tracker, sponsor, settings }: Service,
  { payer, signedXDR }: { payer: string; signedXDR: string },
  readTerms: () => ClientTerms | Promise<ClientTerms>,
): Promise<TransferResult> {
  // A malformed or foreign transaction is refused even while the database is unreachable.
  const inner = decodeInner(signedXDR, tracker.network.passphrase)
  if (inner.source !== payer) throw new Refusal('source-mismatch')
  const context = { tracker, sponsor, waitMs: settings.transferWait }
  return await sponsorTransfer(context, inner, readTerms())
}

export const TRANSFER_OPERATIONS = inGroup('Transfers', [
  operation({
    id: 'sponsorTransfer',
    waitsForLedger: true,
    route: 'POST /transfer',
    caller: 'session',
    summary: 'Sponsor the network fee of a signed confidential transfer',
    description: [
      'The inner transaction is a single `confidential_transfer` whose source is the account of the session, signed and',
      'valid for another 10 to 330 seconds. The service wraps it in a fee bump of twice its fee, submits it and waits for',
      'the outcome. You may send the same `signedXDR` again at any time: it is paid for once, and every response has the',
      'outcome on the ledger. If you get no response, or `transfer-open`, send it again unchanged.',
    ].join(' '),
    body: {
      schema: transferRequest,
      example: { signedXDR: 'AAAAAgAAAABqvH4zLJ5FMzK86cKuG8B3x…', payoutId: EXAMPLE.payoutId },
    },
    requires: (_, { session }) => requirePayer(session),
    response: {
      description: 'The transfer was applied',
      schema: transferShape,
      example: { hash: EXAMPLE.hash, status: 'SUCCESS' },
    },
    refusals: TRANSFER_REFUSALS,
    failure: 'transfer failed',
    advice: 'send the same `signedXDR` again',
    handle: async ({ service, ready: payer, body: { signedXDR, payoutId } }) =>
      await sponsorSigned(service, { payer, signedXDR }, () => (payoutId === undefined ? {} : { payoutId })),
  }),
])
