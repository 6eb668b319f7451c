import { Keypair } from '@stellar/stellar-sdk'
import type { DirectoryContext } from '#lib/directory/context.ts'
import { directoryContext } from '#lib/server/services.ts'
import type { Answer } from './api-client.ts'
import type { TestService, TestServiceOptions } from './test-service.ts'

/** The identity provider of a service that configures none. */
export const ISSUER = 'https://login.example'

export const NOW = new Date('2026-04-01T12:00:00.123Z')

/** The options of a service with a fake RPC and a clock frozen at NOW. */
export function atNoon(variables: Record<string, string> = {}): TestServiceOptions<'fake'> {
  const own = { PUBLIC_URL: 'https://pay.example', IDP_ISSUER: ISSUER, IDP_AUDIENCE: 'payroll' }
  return { ledger: 'fake', now: NOW, variables: { ...own, ...variables } }
}

/** The context of a directory verb that a test calls directly, at the time of the test's clock. */
export function contextOf({ running, clock }: Pick<TestService, 'running' | 'clock'>): Promise<DirectoryContext> {
  return directoryContext({ ...running, now: () => clock.now })
}

/** The id of the record in a response. */
export function idOf({ status, body }: Answer): string {
  if (typeof body.id !== 'string') throw new Error(`no record but ${status} ${JSON.stringify(body)}`)
  return body.id
}

/** One field of every record in a list. */
export function fieldsOf({ body }: Answer, list: string, field: string): unknown[] {
  const records = body[list]
  if (!Array.isArray(records)) throw new Error(`no list but ${JSON.stringify(body)}`)
  return records.map((record: Record<string, unknown>) => record[field])
}

/** A test account, the same in every run. */
export function accountOf(number: number): string {
  const seed = new Uint8Array(32)
  new DataView(seed.buffer).setUint32(0, number)
  return Keypair.fromRawEd25519Seed(seed).publicKey()
}

/** 128 hex digits, different for every number. */
export const keyOf = (number: number): string => number.toString(16).padStart(128, '0')
