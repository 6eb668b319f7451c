import { cache } from 'react'
import { type Pulse, readPulse } from '#lib/dashboard/pulse.ts'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import { service } from '#lib/server/services.ts'

/**
 * The pulse of the page that is being rendered, read once per request, before anything else: if a record changes during
 * rendering, the next pulse differs and the page reloads. Undefined while the database cannot be reached.
 */
export const readPagePulse = cache(async (): Promise<Pulse | undefined> => {
  const { database } = await service()
  return await readIfReachable(database, readPulse)
})
