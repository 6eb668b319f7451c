import { equalBytes } from '@noble/curves/utils.js'
import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js'
import { StrKey } from '@stellar/stellar-sdk'
import { z } from 'zod'
import { DISCLOSURE_CIRCUITS, DISCLOSURE_ROLES, type DisclosureCircuit } from '#lib/prover/disclosure-circuits.ts'
import { excessOf, parseJson } from '#lib/text/json.ts'
import { formatUnits, parseUnits } from '#lib/text/money.ts'
import { containsSecretSeed } from '#lib/text/plain-text.ts'
import { AMOUNT_LIMIT, isKey } from '#lib/wallet/commitment.ts'
import { encodeField, encodePoint, H, isCanonical, multiply } from '#lib/wallet/grumpkin.ts'
import { drawSalt, type RandomSource } from '#lib/wallet/keys.ts'
import { DisclosureError, describeMismatch } from './disclosure-error.ts'

const VERSION = 'confidential-disclosure-request/1'

const hex = (bytes: number) => z.string().regex(new RegExp(`^[0-9a-f]{${2 * bytes}}$`), `not ${bytes} bytes in hex`)
const account = z.string().refine(isAccount, 'not an address')
const instant = z.iso.datetime()
const amount = z.string().refine(isAmount, 'not an amount of at most seven decimals, below 2^127 base units')

const SHARED = {
  version: z.literal(VERSION),
  network: z.string().min(1).max(200),
  token: z.string().refine((value) => StrKey.isValidContract(value), 'not a contract'),
  key: hex(64),
  nonce: hex(32),
  account,
  circuits: z.array(z.string()).min(1),
}
const PAYMENTS = { ...SHARED, role: z.enum(DISCLOSURE_ROLES) }

/** One payment, a total over a period, or a balance. */
const REQUEST = z.discriminatedUnion('statement', [
  z.strictObject({ ...PAYMENTS, statement: z.literal('payment') }),
  z.strictObject({
    ...PAYMENTS,
    statement: z.literal('total'),
    period: z.strictObject({ from: instant, to: instant }),
    atLeast: amount.optional(),
  }),
  z.strictObject({ ...SHARED, statement: z.literal('balance'), atLeast: amount.optional(), atMost: amount.optional() }),
])

/**
 * Everything that the requester will rely on, and nothing secret. Amounts are decimals, times are ISO 8601, the end of a
 * period is excluded.
 */
export type DisclosureRequest = z.output<typeof REQUEST>

type Asked<Request> = Request extends DisclosureRequest
  ? Omit<Request, 'version' | 'key' | 'nonce' | 'circuits'>
  : never

/** The question that a request asks. */
export type Question = Asked<DisclosureRequest>

/** A request for `question`, with a fresh nonce, to the holder of `secret` (`drawRequesterKey`). */
export function createRequest(secret: bigint, question: Question, random: RandomSource): DisclosureRequest {
  const key = bytesToHex(encodePoint(multiply(H, secret)))
  const nonce = bytesToHex(encodeField(drawSalt(random)))
  const request = { ...question, version: VERSION, key, nonce }
  return parseRequest(JSON.stringify({ ...request, circuits: circuitsFor(question).map(({ name }) => name) }))
}

/** A requester's secret key r_R. Its public key is r_R · H. */
export const drawRequesterKey = (random: RandomSource): bigint => drawSalt(random)

/** The circuits that can answer a question, the smallest first. */
export function circuitsFor(question: Question | DisclosureRequest): DisclosureCircuit[] {
  const disclosed = 'atLeast' in question && question.atLeast !== undefined ? 'at-least' : 'value'
  return DISCLOSURE_CIRCUITS.filter((circuit) => {
    if (circuit.kind !== question.statement) return false
    if (question.statement === 'balance') {
      return circuit.disclosed === (question.atMost === undefined ? disclosed : 'at-most')
    }
    return circuit.kind !== 'balance' && circuit.role === question.role && circuit.disclosed === disclosed
  })
}

/** The threshold of a request in base units; undefined if it asks for the value. */
export function thresholdOf(request: DisclosureRequest): bigint | undefined {
  if (request.statement === 'payment') return undefined
  const decimal = request.statement === 'balance' ? (request.atMost ?? request.atLeast) : request.atLeast
  return decimal === undefined ? undefined : parseUnits(decimal)
}

/**
 * Parses a request file, which has at most 1 MB and 64 levels, and checks every field, because none was chosen by the
 * wallet that answers it.
 * @throws DisclosureError `request-invalid`
 */
export function parseRequest(text: string): DisclosureRequest {
  const excess = excessOf(text)
  if (excess) throw invalid(`it ${excess}`)
  const content = parseJson(text)
  if (content === undefined) throw invalid('it is not JSON')
  const parsed = REQUEST.safeParse(content)
  const key = keyOf(content)
  const texts = textsIn(content)
  if (texts.some(containsSecretSeed) || (key && containsSecretOf(key, texts))) {
    throw invalid('it contains a secret: keep that in another file, and make a new request')
  }
  if (!parsed.success) throw invalid(describeMismatch(parsed.error), parsed.error)
  const request = parsed.data
  if (!key) throw invalid('its key is not a point of the curve, or is the identity')
  if (!isCanonical(hexToBytes(request.nonce))) throw invalid('its nonce is too large')
  if (request.statement === 'balance' && request.atLeast !== undefined && request.atMost !== undefined) {
    throw invalid('it has two thresholds')
  }
  if (request.statement === 'total' && Date.parse(request.period.from) >= Date.parse(request.period.to)) {
    throw invalid('its period ends before it begins')
  }
  const accepted = circuitsFor(request).map(({ name }): string => name)
  if (request.circuits.join() !== accepted.join()) throw invalid('its circuits are not those of its statement')
  return request
}

/** P_R, unless it is off the curve or the identity, which everyone could decrypt for. */
function keyOf(content: unknown): Uint8Array | undefined {
  const { key } = typeof content === 'object' && content !== null && 'key' in content ? content : { key: undefined }
  if (typeof key !== 'string' || !/^[0-9a-f]{128}$/i.test(key)) return undefined
  const bytes = hexToBytes(key)
  return isKey(bytes) ? bytes : undefined
}

/** More scalars than a request contains besides its key. Each takes a multiplication, and a longer file would take minutes. */
const MAX_SCALARS = 500

/** Whether a text contains the secret of the request's key in hex, even among other digits. */
function containsSecretOf(key: Uint8Array, texts: readonly string[]): boolean {
  const own = bytesToHex(key)
  const others = texts.filter((text) => text.toLowerCase() !== own).join('\n')
  const scalars = new Set(Array.from(others.matchAll(/(?=([0-9a-f]{64}))/gi), ([, digits = '']) => digits))
  if (scalars.size > MAX_SCALARS) throw invalid('it has more hexadecimal digits than a request needs')
  return [...scalars].some((scalar) => equalBytes(encodePoint(multiply(H, BigInt(`0x${scalar}`))), key))
}

function textsIn(content: unknown): string[] {
  if (typeof content === 'string') return [content]
  if (typeof content !== 'object' || content === null) return []
  return Object.entries(content).flatMap(([name, value]) => [name, ...textsIn(value)])
}

function isAccount(value: string): boolean {
  return StrKey.isValidEd25519PublicKey(value) || StrKey.isValidContract(value)
}

function isAmount(value: string): boolean {
  try {
    return parseUnits(value) < AMOUNT_LIMIT && formatUnits(parseUnits(value)) === value
  } catch {
    return false
  }
}

const invalid = (reason: string, cause?: unknown) =>
  new DisclosureError('request-invalid', `the request is invalid: ${reason}`, { cause })
