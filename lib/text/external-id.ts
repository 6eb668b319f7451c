import { z } from 'zod'

const PATTERN = /^[A-Za-z0-9._:/-]{1,100}$/

/** A Stellar address, muxed ones included, or a seed: 56 base32 characters or more. A seed in lower case is one, too. */
const STRKEY = /[a-z2-7]{56}/i

export const EXTERNAL_ID_PROBLEM = 'must be 1 to 100 of A-Z a-z 0-9 . _ : / - without a ledger address or seed'

/** The id that a record has in the client's own system, such as `payroll/2026-03/17`. */
export const externalIdField = z
  .string('must be a string')
  .regex(PATTERN, EXTERNAL_ID_PROBLEM)
  .refine((text) => !STRKEY.test(text), EXTERNAL_ID_PROBLEM)
  .meta({ description: 'your own id of it, unique in your organisation', 'x-extension': true })

/** The field of a record in a response. */
export const externalIdShape = z.string().optional().meta({ description: 'your own id of it', 'x-extension': true })
