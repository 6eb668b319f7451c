import { z } from 'zod'
import { REFUSAL_REASONS } from '#lib/sponsor/refusal-reason.ts'
import { type TransferResult, transferRequest } from '#lib/sponsor/transfer.ts'
import { EXAMPLE } from './examples.ts'
import type { Operation } from './operation.ts'

export const transferShape = z.object({
  hash: z.string().meta({ description: 'hash of the transaction on the ledger, 64 hex digits' }),
  status: z.literal('SUCCESS'),
}) satisfies z.ZodType<TransferResult>

const REFUSED = Object.entries(REFUSAL_REASONS).map(
  ([reason, words]) => `sponsor refused: ${words}${reason === 'would-fail' ? ': {contract error}' : ''}`,
)

export const TRANSFER_OPERATIONS: Operation[] = [
  {
    id: 'sponsorTransfer',
    method: 'post',
    path: '/transfer',
    group: 'Transfers',
    caller: 'session',
    summary: 'Have the network fee of a signed confidential transfer paid',
    description: [
      'The inner transaction is a single `confidential_transfer` whose source is the account of the session, signed and',
      'valid for 10 to 330 seconds more. It is wrapped in a fee bump of twice its fee, sent, and waited for. The same',
      '`signedXDR` may be sent again at any time: it is paid for once, and everybody gets what the ledger says. After a',
      '500 send it again, unchanged, until its time bounds are over.',
    ].join(' '),
    body: {
      schema: transferRequest,
      example: { signedXDR: 'AAAAAgAAAABqvH4zLJ5FMzK86cKuG8B3x…', payoutId: EXAMPLE.payoutId },
      messages: ['malformed transaction XDR'],
    },
    answer: {
      description: 'It stands on the ledger',
      schema: transferShape,
      example: { hash: EXAMPLE.hash, status: 'SUCCESS' },
    },
    refusals: {
      403: ['transaction source is not your session account'],
      422: REFUSED,
      501: ['transfers need a wallet session', 'no fee sponsor is configured'],
    },
    failure: 'transfer failed',
  },
]
