import { z } from 'zod'
import { REFUSALS, type RefusalCode } from '#lib/refusal/refusal.ts'
import { decodeOwn, requirePayer, sponsorTransfer, transferRequest } from '#lib/transfers/submit.ts'
import { EXAMPLE } from './examples.ts'
import { inGroup, operation } from './operation.ts'

export const transferShape = z.object({
  hash: z.string().meta({ description: 'hash of the transaction on the ledger, 64 hex digits' }),
  status: z.literal('SUCCESS'),
})

const REASONS = Object.keys(REFUSALS[422]) as RefusalCode[]
const ENDINGS: RefusalCode[] = [
  'transfer-open',
  'transfer-refused',
  'transfer-replaced',
  'transfer-failed',
  'transfer-expired',
  'transfer-unknown',
]

export const TRANSFER_OPERATIONS = inGroup('Transfers', [
  operation({
    id: 'sponsorTransfer',
    route: 'POST /transfer',
    caller: 'session',
    summary: 'Have the network fee of a signed confidential transfer paid',
    description: [
      'The inner transaction is a single `confidential_transfer` whose source is the account of the session, signed and',
      'valid for 10 to 330 seconds more. It is wrapped in a fee bump of twice its fee, sent, and waited for. The same',
      '`signedXDR` may be sent again at any time: it is paid for once, and every answer says what the ledger says.',
      'Without an answer, or after `transfer-open`, send it again, unchanged.',
    ].join(' '),
    body: {
      schema: transferRequest,
      example: { signedXDR: 'AAAAAgAAAABqvH4zLJ5FMzK86cKuG8B3x…', payoutId: EXAMPLE.payoutId },
    },
    requires: (_, { session }) => requirePayer(session),
    response: {
      description: 'It stands on the ledger',
      schema: transferShape,
      example: { hash: EXAMPLE.hash, status: 'SUCCESS' },
    },
    refusals: [
      ...(['signed-xdr-invalid', 'source-mismatch', 'wallet-required', 'sponsor-not-configured'] as const),
      ...REASONS,
      ...ENDINGS,
    ],
    failure: 'transfer failed',
    handle: async ({ service, ready: payer, body }) => {
      const { submission, sponsor, settings } = service
      // A fault of the transaction itself is refused even while the database cannot be reached.
      decodeOwn(submission.network.passphrase, { payer, signedXDR: body.signedXDR })
      const context = { db: await service.database(), submission, sponsor, patience: settings.transferWait }
      return await sponsorTransfer(context, { payer, ...body })
    },
  }),
])
