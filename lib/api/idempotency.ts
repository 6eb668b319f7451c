import { createHash, createHmac } from 'node:crypto'
import { findOutcome, type IdempotentRequest } from '#lib/db/idempotency.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import type { Principal } from './caller.ts'
import { ApiResponse, type Operation } from './operation.ts'

const KEY = /^[\x21-\x7e]{1,255}$/

/**
 * The Idempotency-Key of a request (draft-ietf-httpapi-idempotency-key-header), as it was sent.
 * @throws Refusal `idempotency-key-invalid`
 */
export function readIdempotencyKey(request: Request): string | undefined {
  const key = request.headers.get('idempotency-key')
  if (key === null) return undefined
  if (!KEY.test(key)) throw new Refusal('idempotency-key-invalid')
  return key
}

/** The input of an idempotent operation's handler. */
export type IdempotentContext = Principal<'user'> & {
  params: Record<string, string>
  body: unknown
  once?: IdempotentRequest
}

/** Runs the handler of an operation, or presents the response of an earlier request with the same key again. */
export async function handleOnce(
  { method, path, handle, idempotent: present }: Operation,
  context: IdempotentContext,
  key: string,
): Promise<unknown> {
  if (!present) throw new Error(`${path} is not idempotent`)
  const { db, user, params, body } = context
  const once: IdempotentRequest = {
    person: user.organisationId,
    identity: { kind: user.identity.kind, sub: user.identity.sub },
    identities: user.identities,
    key: createHash('sha256').update(key).digest('hex'),
    fingerprint: createHmac('sha256', key)
      .update(JSON.stringify([method, path, canonical(params), canonical(body)]))
      .digest('hex'),
  }
  const replay = async () => {
    const outcome = await findOutcome(db, once)
    const headers = { 'Idempotency-Replayed': 'true' }
    return outcome && new ApiResponse(await present(context, outcome), { headers })
  }
  const earlier = await replay()
  if (earlier) return earlier
  return await handle({ ...context, once }).catch(async (error: unknown) => {
    // The other request may have ended since.
    const isInUse = error instanceof Refusal && error.code === 'idempotency-key-in-use'
    const response = isInUse ? await replay() : undefined
    if (!response) throw error
    return response
  })
}

/** Deeper than any body that an operation accepts. */
const MAX_DEPTH = 32

/** A JSON value with the keys of every object in order. */
function canonical(value: unknown, depth = 0): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (depth === MAX_DEPTH) throw new Refusal('body-invalid', 'the body is nested too deeply')
  if (Array.isArray(value)) return value.map((item) => canonical(item, depth + 1))
  const entries = Object.entries(value).map(([key, item]) => [key, canonical(item, depth + 1)] as const)
  return Object.fromEntries(entries.toSorted(([one], [other]) => (one < other ? -1 : 1)))
}
