import { isNotNull, sql } from 'drizzle-orm'
import { relayLines } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { startRelay } from '#lib/server/relay.ts'
import { type MortalService, startMortal } from '../support/mortal.ts'
import { SHORT_TIMES } from './short-times.ts'

/** Starts a relay that can end as a killed process does; resolves once it is at work. */
export async function startMortalRelay(variables: Record<string, string>): Promise<Pick<MortalService, 'kill'>> {
  const service = await startMortal(variables, { choresEveryMs: 0 })
  const relay = await startRelay(service.running, { times: SHORT_TIMES })
  return {
    kill: async () => {
      await service.kill()
      void relay.close().catch(() => undefined)
    },
  }
}

/** Ends every lease, as if its host had died long enough ago. */
export async function expireLeases(db: Database): Promise<void> {
  await db.update(relayLines).set({ leasedUntil: sql`clock_timestamp()` }).where(isNotNull(relayLines.leasedUntil))
}
