import { z } from 'zod'
import type { Network } from './network.ts'

const seconds = z.union([z.number().int(), z.string().regex(/^\d+$/)]).transform(Number)

/** What a look-up by hash says: where the network is, and whether it knows the transaction. */
const LOOKUP = z.discriminatedUnion('status', [
  z.object({
    status: z.literal('NOT_FOUND'),
    latestLedger: z.number().int(),
    latestLedgerCloseTime: seconds,
    oldestLedger: z.number().int(),
  }),
  z.object({
    status: z.enum(['SUCCESS', 'FAILED']),
    latestLedger: z.number().int(),
    ledger: z.number().int(),
    resultXdr: z.string(),
    diagnosticEventsXdr: z.array(z.string()).nullish(),
  }),
])

export type Lookup = z.output<typeof LOOKUP>

/** @throws Refusal `unavailable` */
export function lookUp(network: Network, hash: string): Promise<Lookup> {
  return network.call('getTransaction', { hash }, LOOKUP)
}
