import { z } from 'zod'
import type { Network } from './network.ts'

const seconds = z.union([z.number().int(), z.string().regex(/^\d+$/)]).transform(Number)

const RANGE = { latestLedger: z.number().int(), latestLedgerCloseTime: seconds, oldestLedger: z.number().int() }

/** What a look-up by hash says: how far the history of the answer reaches, and whether it knows the transaction. */
const LOOKUP = z.discriminatedUnion('status', [
  z.object({ status: z.literal('NOT_FOUND'), ...RANGE }),
  z.object({
    status: z.enum(['SUCCESS', 'FAILED']),
    ...RANGE,
    ledger: z.number().int(),
    createdAt: seconds,
    envelopeXdr: z.string(),
    resultXdr: z.string(),
    diagnosticEventsXdr: z.array(z.string()).nullish(),
  }),
])

export type Lookup = z.output<typeof LOOKUP>

/** A transaction that stands on the ledger, as the RPC tells it. `createdAt` is when its ledger closed, unix seconds. */
export type FoundTransaction = Pick<
  Exclude<Lookup, { status: 'NOT_FOUND' }>,
  'status' | 'ledger' | 'createdAt' | 'envelopeXdr' | 'resultXdr' | 'diagnosticEventsXdr'
>

/** @throws Refusal `unavailable` */
export function lookUp(network: Network, hash: string): Promise<Lookup> {
  return network.call('getTransaction', { hash }, LOOKUP)
}
