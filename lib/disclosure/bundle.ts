import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js'
import { z } from 'zod'
import { decodeBase64, encodeBase64 } from '#lib/text/base64.ts'
import { excessOf, parseJson } from '#lib/text/json.ts'
import { isCanonical } from '#lib/wallet/grumpkin.ts'
import { DisclosureError, describeMismatch } from './disclosure-error.ts'
import type { Sealed } from './sealing.ts'

const VERSION = 'confidential-disclosure/1'

/** The size of a zero-knowledge proof in bytes. A proof without zero knowledge is shorter. */
export const ZK_PROOF_BYTES = 16_224

/**
 * The position of an event on the ledger: its transaction (the outer one of a fee bump), and its index in the
 * operation.
 */
export interface EventReference {
  transaction: string
  eventIndex: number
}

/** One proof. Everything that it is about is read from the ledger and from the request. */
export interface Bundle {
  circuit: string
  events: EventReference[]
  proof: Uint8Array
  /** absent where a threshold is proved */
  sealed?: Sealed | undefined
}

/** As many of the largest bundles as fit into a file. */
export const MAX_BUNDLES = 40

const words = (count: number) =>
  z
    .string()
    .regex(new RegExp(`^[0-9a-f]{${64 * count}}$`))
    .transform((text) => hexToBytes(text))
    .refine(isCanonical, 'not a field element')

const BUNDLE = z.strictObject({
  circuit: z.string().max(100),
  events: z
    .array(
      z.strictObject({
        transaction: z.string().regex(/^[0-9a-f]{64}$/),
        eventIndex: z.int().min(0).max(0xffff_ffff),
      }),
    )
    .max(100),
  proof: z
    .base64()
    .max(40_000)
    .transform((text) => decodeBase64(text) ?? new Uint8Array()),
  sealed: z.strictObject({ key: words(2), value: words(1) }).optional(),
})
const FILE = z.strictObject({ version: z.literal(VERSION), bundles: z.array(BUNDLE).min(1).max(MAX_BUNDLES) })

/** The bundles of a file: several answer the same request together. */
export function encodeBundles(bundles: readonly Bundle[]): string {
  const encoded = bundles.map(({ circuit, events, proof, sealed }) => ({
    circuit,
    events,
    proof: encodeBase64(proof),
    ...(sealed && { sealed: { key: bytesToHex(sealed.key), value: bytesToHex(sealed.value) } }),
  }))
  return `${JSON.stringify({ version: VERSION, bundles: encoded }, null, 2)}\n`
}

/**
 * The bundles of a file, which has at most 1 MB and 64 levels.
 * @throws DisclosureError `bundle-invalid`
 */
export function parseBundles(text: string): Bundle[] {
  const excess = excessOf(text)
  if (excess) throw new DisclosureError('bundle-invalid', `the bundle ${excess}`)
  const content = parseJson(text)
  if (content === undefined) throw new DisclosureError('bundle-invalid', 'the bundle is not JSON')
  const parsed = FILE.safeParse(content)
  if (parsed.success) return parsed.data.bundles
  const reason = describeMismatch(parsed.error)
  throw new DisclosureError('bundle-invalid', `the bundle is malformed: ${reason}`, { cause: parsed.error })
}
