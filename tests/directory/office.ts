import { Keypair } from '@stellar/stellar-sdk'
import type { Answer, Method } from '../support/api-client.ts'
import { ISSUER, openTestService, type TestService } from '../support/test-service.ts'

export type { Answer, Method } from '../support/api-client.ts'
export { ISSUER } from '../support/test-service.ts'

/** A service over a database and a fake RPC, whose clock stands still. */
export interface Office extends TestService<'fake'> {
  databaseUrl: string
  rpc: TestService<'fake'>['ledger']
  call(session: string | undefined, method: Method, path: string, body?: unknown): Promise<Answer>
}

export const NOW = new Date('2026-04-01T12:00:00.123Z')

/** @param variables on top of the office's own configuration */
export async function openOffice(variables: Record<string, string> = {}): Promise<Office> {
  const service = await openTestService({
    ledger: 'fake',
    now: NOW,
    variables: { PUBLIC_URL: 'https://pay.example', IDP_ISSUER: ISSUER, IDP_AUDIENCE: 'payroll', ...variables },
  })
  return {
    ...service,
    databaseUrl: service.database.url,
    rpc: service.ledger,
    call: (session, method, path, body) => service.ask(method, path, { session, body }),
  }
}

/** The id of the record that an answer holds. */
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

/** An account of the test's own, the same in every run. */
export function accountOf(number: number): string {
  const seed = new Uint8Array(32)
  new DataView(seed.buffer).setUint32(0, number)
  return Keypair.fromRawEd25519Seed(seed).publicKey()
}

/** 128 hex digits that differ for every number. */
export const keyOf = (number: number): string => number.toString(16).padStart(128, '0')
