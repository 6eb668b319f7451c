import { StrKey } from '@stellar/stellar-sdk'
import { z } from 'zod'
import { CONTRACTOR_STATUSES, CURRENCIES, contractors } from '#drizzle/schema/directory.ts'
import { emailField } from '#lib/text/email.ts'
import { externalIdField, externalIdShape } from '#lib/text/external-id.ts'
import { absentOr, plainText } from '#lib/text/plain-text.ts'
import { columnsOf, presentAs } from '../presentation.ts'

const nameField = plainText(200)

/** An account or a contract. Muxed addresses (M…) are rejected: they name more than an account. */
const addressField = z
  .string('must be a string')
  .refine(
    (text) => StrKey.isValidEd25519PublicKey(text) || StrKey.isValidContract(text),
    'must be a ledger address (G… or C…)',
  )
  .meta({ description: 'ledger address (G… or C…)' })

/** Plain decimals without sign, exponent or leading zeros. Twelve integer digits fit 64 bits of base units. */
const POSITIVE_DECIMAL = /^(?=.*[1-9])(0|[1-9]\d{0,11})(\.\d{1,7})?$/
const RATE_AMOUNT = 'must be a positive decimal with at most 7 decimals'

/** What an employer must know before it sends a rate. */
const READABLE = 'in clear text, which the service can read and stores: leave it out to keep the pay confidential'

const rateField = z
  .object(
    {
      amount: z
        .string({ error: absentOr('must be a string') })
        .regex(POSITIVE_DECIMAL, RATE_AMOUNT)
        .meta({ description: 'a positive decimal with at most 7 decimals' }),
      currency: z.enum(CURRENCIES, { error: absentOr(`must be ${CURRENCIES.join(' or ')}`) }),
    },
    'must be an object of amount and currency',
  )
  .meta({ description: `an agreed rate, ${READABLE}` })

/** An optional field. An empty string and null count as absent, because CSV files and forms send them. */
function optional<Field extends z.ZodType>(field: Field) {
  const orAbsent = (value: unknown) => (value === '' || value === null ? undefined : value)
  return z.preprocess(orAbsent, field.optional()).optional()
}

/** The body of POST /contractors. */
export const newContractor = z.object({
  name: nameField,
  email: optional(emailField),
  address: optional(addressField),
  rate: optional(rateField),
  externalId: optional(externalIdField),
})
export type NewContractor = z.output<typeof newContractor>

/** The body of PATCH /contractors/{id}. Null clears a field. */
export const contractorChanges = z.object({
  name: nameField.optional(),
  email: emailField.nullable().optional(),
  address: addressField.nullable().optional(),
  rate: rateField.nullable().optional(),
  externalId: externalIdField.nullable().optional(),
  status: z.enum(CONTRACTOR_STATUSES, `must be one of ${CONTRACTOR_STATUSES.join(', ')}`).optional(),
})
export type ContractorChanges = z.output<typeof contractorChanges>

const MAX_ROWS = 2_000

/** The body of POST /contractors/bulk. Rows are parsed one by one, so an invalid row fails alone. */
export const contractorRows = z.object({
  rows: z
    .array(z.unknown(), { error: absentOr('must be a list') })
    .max(MAX_ROWS, `must have at most ${MAX_ROWS.toLocaleString('en')} rows; send the others in another request`),
})

export const contractorRow = z.object(
  {
    name: nameField,
    email: optional(emailField),
    address: optional(addressField),
    amount: optional(
      z
        .union([z.number(), z.string()], RATE_AMOUNT)
        .transform(plainDecimal)
        .pipe(z.string().regex(POSITIVE_DECIMAL, RATE_AMOUNT)),
    ).meta({ description: `an agreed rate in USDC, ${READABLE}` }),
    externalId: optional(externalIdField),
  },
  'row must be an object',
)

/** Writes a number without exponent, rounded to seven decimals. Returns a string unchanged. */
function plainDecimal(amount: number | string): string {
  return typeof amount === 'string' ? amount : amount.toFixed(7).replace(/\.?0+$/, '')
}

/** A contractor in a response. Fields without a value are left out. */
export const contractorShape = z.object({
  id: z.string(),
  name: z.string(),
  status: z.enum(CONTRACTOR_STATUSES),
  createdAt: z.iso.datetime(),
  email: z.string().optional(),
  address: z.string().optional().meta({ description: 'ledger address (G… or C…), once known' }),
  pvk: z.string().optional().meta({ description: 'public viewing key from the ledger, 128 hex digits' }),
  rate: z
    .object({ amount: z.string(), currency: z.enum(CURRENCIES) })
    .optional()
    .meta({ description: 'as it was sent, in clear text' }),
  externalId: externalIdShape,
  lastPaidAt: z.iso.datetime().optional(),
})
export type Contractor = z.output<typeof contractorShape>

export const contractorsShape = z.object({ contractors: z.array(contractorShape) })

/** The columns that `presentContractor` needs. */
export const CONTRACTOR_COLUMNS = {
  ...columnsOf(contractors, contractorShape),
  rateAmount: contractors.rateAmount,
  rateCurrency: contractors.rateCurrency,
}

export type ContractorRow = Pick<typeof contractors.$inferSelect, keyof typeof CONTRACTOR_COLUMNS>

const present = presentAs(contractorShape)

export function presentContractor({ rateAmount: amount, rateCurrency: currency, ...row }: ContractorRow): Contractor {
  return present({ ...row, rate: amount !== null && currency !== null ? { amount, currency } : null })
}

export const importShape = z.object({
  imported: z.array(contractorShape),
  existing: z.array(z.string()).optional().meta({
    description:
      'if rows have an `externalId`: the ids of the contractors that had it already, in the order of the rows',
    'x-extension': true,
  }),
  errors: z.array(
    z.object({
      row: z.int().meta({ description: 'counts from 1' }),
      code: z.string().meta({ description: 'the code of the refusal of a single contractor', 'x-extension': true }),
      reason: z.string(),
    }),
  ),
})
export type Import = z.output<typeof importShape>

export const removedShape = z.object({ id: z.string() })
export const inviteShape = z.object({ inviteUrl: z.string() })
