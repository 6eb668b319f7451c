import type { z } from 'zod'
import { Refusal } from '#lib/refusal/refusal.ts'
import { receiveBody, takeTurn, tooLarge } from './fairness.ts'
import { parse } from './parsing.ts'

const BODY_LIMIT = 256 * 1024

/** How much of a body is read and discarded so that the connection can serve its next request (bytes). */
const DRAIN_LIMIT = 64 * 1024 * 1024

/**
 * The JSON body of a request, parsed by `schema`. A missing body counts as `{}` with any content type. The limit of
 * 256 KiB is enforced while reading, since Content-Length is only a claim.
 * @param options.otherwise the message for a body of another type
 * @param options.isOpen whether the operation needs no session
 * @throws Refusal `too-large`, `busy`, `unsupported-media`, or the 400 of a field
 */
export async function readJson<Schema extends z.ZodType>(
  request: Request,
  schema: Schema,
  { otherwise = 'the body must be application/json', isOpen = false }: { otherwise?: string; isOpen?: boolean } = {},
): Promise<z.output<Schema>> {
  const bytes = await readBody(request, isOpen)
  if (bytes.length === 0) return parse(schema, {})
  if (mediaType(request) !== 'application/json') throw new Refusal('unsupported-media', otherwise)
  return parse(schema, decodeJson(bytes))
}

/** A JSON body, or the fields of a form (application/x-www-form-urlencoded). SEP-10 requires both, without a session. */
export async function readJsonOrForm<Schema extends z.ZodType>(
  request: Request,
  schema: Schema,
): Promise<z.output<Schema>> {
  if (isForm(request)) return await readForm(request, schema)
  const otherwise = 'the body must be application/json or application/x-www-form-urlencoded'
  return await readJson(request, schema, { otherwise, isOpen: true })
}

/**
 * The fields of a form (application/x-www-form-urlencoded), parsed by `schema`. The first of repeated fields counts.
 * @throws Refusal `too-large`, `busy`, `unsupported-media`, or the 400 of a field
 */
export async function readForm<Schema extends z.ZodType>(request: Request, schema: Schema): Promise<z.output<Schema>> {
  const bytes = await readBody(request, true)
  if (!isForm(request)) throw new Refusal('unsupported-media', 'the body must be application/x-www-form-urlencoded')
  return parse(schema, firstOfEach(new URLSearchParams(decodeText(bytes))))
}

/**
 * The query of a request, parsed by `schema`. The first of repeated parameters counts, and an empty one counts as absent.
 */
export function readQuery<Schema extends z.ZodType>(request: Request, schema: Schema): z.output<Schema> {
  const parameters = Object.entries(firstOfEach(new URL(request.url).searchParams)).filter(([, value]) => value !== '')
  return parse(schema, Object.fromEntries(parameters))
}

/**
 * Reads the body of an operation that takes none. Next does not pass on the body of a GET, so its Content-Length is
 * checked instead.
 * @throws Refusal `too-large`
 */
export async function ignoreBody(request: Request): Promise<void> {
  if (request.body && !request.bodyUsed) await readBody(request, false)
  else if (Number(request.headers.get('content-length')) > BODY_LIMIT) throw tooLarge(BODY_LIMIT)
}

/**
 * Discards the unread rest of a body. A persistent connection serves no further request until the body has been read to
 * its end.
 */
export function discardBody(request: Request): void {
  if (request.body && !request.bodyUsed && !request.body.locked) void drain(request.body.getReader())
}

/** Whether the body is too large to discard, so that closing the connection is cheaper. */
export const isBeyondDraining = (request: Request): boolean =>
  Number(request.headers.get('content-length')) > DRAIN_LIMIT

const isForm = (request: Request) => mediaType(request) === 'application/x-www-form-urlencoded'

function mediaType(request: Request): string | undefined {
  return request.headers.get('content-type')?.split(';', 1)[0]?.trim().toLowerCase()
}

function firstOfEach(parameters: URLSearchParams): Record<string, string> {
  const first: Record<string, string> = {}
  for (const [name, value] of parameters) first[name] ??= value
  return first
}

/** Most bodies of callers with a session are no larger than this (bytes). */
const SMALL = 4 * 1024

/**
 * Reads a body. Callers with a session don't wait behind strangers for parsing, and small bodies don't wait behind
 * large ones.
 */
async function readBody(request: Request, isOpen: boolean): Promise<Uint8Array> {
  if (!request.body) return new Uint8Array()
  const reader = request.body.getReader()
  try {
    return await receiveBody(reader, BODY_LIMIT, (size) => {
      if (isOpen) return 'open body'
      return size > SMALL ? 'large body' : 'small body'
    })
  } catch (refused) {
    void drain(reader)
    throw refused
  }
}

async function drain(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  try {
    for (let drained = 0; drained <= DRAIN_LIMIT; ) {
      await takeTurn('large body')
      const { value } = await reader.read()
      if (!value) return
      drained += value.length
    }
    await reader.cancel()
  } catch {
    // The client has hung up, so there is no connection to reuse.
  }
}

function decodeJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decodeText(bytes))
  } catch {
    throw new Refusal('body-invalid', 'the body is not JSON in UTF-8')
  }
}

function decodeText(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new Refusal('body-invalid', 'the body is not UTF-8')
  }
}
