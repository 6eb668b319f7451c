import { sql } from 'drizzle-orm'
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

/** Frees the messages of killed relays, as if the ten seconds without a heartbeat had passed already. */
export async function expireHeartbeats(db: Database): Promise<void> {
  await db.execute(sql`UPDATE pgboss.job SET heartbeat_on = heartbeat_on - interval '10 s' WHERE state = 'active'`)
}
