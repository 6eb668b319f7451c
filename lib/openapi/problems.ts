import { Keypair } from '@stellar/stellar-sdk'
import type { z } from 'zod'
import { parse } from '#lib/http/parsing.ts'

/** A valid secret seed that is nobody's: 32 zeros. */
const SEED = Keypair.fromRawEd25519Seed(new Uint8Array(32)).secret()

/** What clients send by mistake or by malice. `undefined` is a field that is not there. */
const HOSTILE = [
  undefined,
  '',
  ' ',
  'nonsense',
  '\u0007',
  SEED,
  `${SEED}@example.com`,
  '9'.repeat(5_000),
  '0',
  7,
  0,
  null,
  {},
  [],
] as const

/**
 * Every message that `schema` has for a body or a query that is like `example` but for one field: found by trying, with
 * the schema that the route itself parses with. `{type}` stands for the type that came, `{i}` for a place in a list.
 * @param example a good one that names every field
 * @param textOnly whether fields can be nothing but text, as in a query
 */
export function problemsOf(schema: z.ZodType, example: unknown, { textOnly = false } = {}): string[] {
  const values = HOSTILE.filter((value) => !textOnly || value === undefined || typeof value === 'string')
  const messages = spoilt(example, values).flatMap((value) => {
    // The whole of a query is always an object.
    if (textOnly && (typeof value !== 'object' || value === null || Array.isArray(value))) return []
    try {
      parse(schema, value)
      return []
    } catch (refused) {
      return refused instanceof Error ? [refused.message.replaceAll(/\.0\b/g, '.{i}')] : []
    }
  })
  return [...new Set(messages)]
}

/** Copies of `example`, each with one of its places taken by one of `values`. */
function spoilt(example: unknown, values: readonly unknown[]): unknown[] {
  if (Array.isArray(example)) {
    const [first, ...rest] = example
    return [...values, ...spoilt(first, values).map((value) => [value, ...rest])]
  }
  if (typeof example !== 'object' || example === null) return [...values]
  const inside = Object.entries(example).flatMap(([name, field]) =>
    spoilt(field, values).map((value) => ({ ...example, [name]: value })),
  )
  return [...values, ...inside]
}
