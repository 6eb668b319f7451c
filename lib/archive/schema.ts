import { z } from 'zod'

export const MAX_PAGE = 1_000

const eventShape = z.object({
  id: z.string().meta({ description: 'the RPC’s event ID' }),
  contract_id: z.string(),
  ledger_seq: z.int(),
  ledger_close_time: z.iso.datetime(),
  tx_hash: z.string().meta({ description: 'hash of the transaction, or of its fee bump; 64 hex digits' }),
  tx_application_order: z.int(),
  event_index: z.int().meta({ description: 'among all contract events of the operation' }),
  type: z.string().meta({ description: 'the first topic, such as `transfer`' }),
  topics_xdr: z.array(z.string()).meta({ description: 'base64 XDR of an ScVal each' }),
  data_xdr: z.string().meta({ description: 'base64 XDR of an ScVal' }),
  payload_xdr: z.string().optional().meta({
    description: 'payload of the call that created or used a delegation, base64 XDR of an ScVal',
  }),
  payload_lost: z.literal(true).optional().meta({ description: 'no node has the payload any more' }),
})

export const pageShape = z.object({
  events: z.array(eventShape).meta({ description: 'in ledger order' }),
  cursor: z.string().nullable().meta({ description: 'start of the next page; null on the last page' }),
  complete: z.boolean().meta({
    description:
      'whether the archive has every requested ledger, as its RPC returned it; with `tx_hash`, the transaction’s ledger',
  }),
})

export const checkpointShape = z.object({
  event: eventShape.nullable().meta({ description: 'the last event with the account’s whole spendable balance' }),
  anchor: eventShape.nullable().meta({
    description:
      'the last merge or clawback at or before it, or the registration: the receiving balance is replayed from there',
  }),
  complete: z.boolean().meta({
    description:
      'whether the archive has every ledger from `event`, or from the registration without one, to `at_ledger`',
  }),
})

export const archiveHealthShape = z.object({
  latest_ledger: z.int().meta({ description: 'the latest ledger of the network' }),
  ingested_through: z
    .int()
    .nullable()
    .meta({ description: 'the latest ledger of the archive; null while it is empty' }),
  final_through: z.int().nullable().meta({
    description:
      'the latest ledger that was read twice, with the same events; null while none was. The RPC may have dropped earlier ones before they were read again',
  }),
  first_ledger: z.int().nullable().meta({ description: 'the first ledger of the archive' }),
  lag_seconds: z.number().nullable().meta({ description: 'the age of the archive’s latest ledger, 0 at the head' }),
  generation: z
    .string()
    .nullable()
    .meta({ description: 'hash of the first ingested ledger; changes when the network is reset' }),
})

/** The highest ledger whose events have a 64-bit position (toid). */
const LAST_LEDGER = 2 ** 31 - 1

/** A ledger number in a query. */
const ledger = (description: string) =>
  z
    .string()
    .regex(/^[1-9]\d{0,9}$/, 'must be a ledger number')
    .transform(Number)
    .refine((sequence) => sequence <= LAST_LEDGER, 'must be a ledger number')
    .optional()
    .meta({ description, type: 'integer', minimum: 1, maximum: LAST_LEDGER })

const LAST_TOID = 2n ** 63n

const generation = z.string().optional().meta({ description: 'the generation that the caller expects, from `/health`' })

const rangeFields = {
  from_ledger: ledger('the first ledger; by default the first of the archive'),
  to_ledger: ledger('the last ledger; by default the last of the archive'),
  cursor: z
    .string()
    // Without abort, the next check would run on any text, and BigInt would throw.
    .regex(/^\d{19}-\d{10}$/, { error: 'must come from an earlier page', abort: true })
    .refine((cursor) => BigInt(cursor.slice(0, 19)) < LAST_TOID, 'must come from an earlier page')
    .optional()
    .meta({ description: '`cursor` of the previous page' }),
  limit: z
    .string()
    .regex(/^[1-9]\d{0,3}$/, `must be 1 to ${MAX_PAGE}`)
    .transform(Number)
    .refine((limit) => limit <= MAX_PAGE, `must be 1 to ${MAX_PAGE}`)
    .optional()
    .meta({ description: 'how many at most', type: 'integer', minimum: 1, maximum: MAX_PAGE }),
  generation,
}

export const rangeQuery = z.object(rangeFields)
export const accountQuery = z.object({
  ...rangeFields,
  types: z
    .string()
    .regex(/^[a-z_]{1,32}(,[a-z_]{1,32}){0,19}$/, 'must be event names, separated by commas')
    .transform((names) => names.split(','))
    .optional()
    .meta({ description: 'only events of these names, separated by commas' }),
})
export const tokenQuery = z.object({
  ...rangeFields,
  tx_hash: z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'must be 64 hex digits')
    .optional()
    .meta({ description: 'return all events of this transaction' }),
})
export const registryQuery = z.object({
  ...rangeFields,
  registry: z
    .string()
    .regex(/^C[A-Z2-7]{55}$/, 'must be a contract')
    .optional()
    .meta({ description: 'only events of this registry, and `complete` about it alone' }),
})
export const checkpointQuery = z.object({
  at_ledger: ledger('as of this ledger; by default the last of the archive'),
  generation,
})
