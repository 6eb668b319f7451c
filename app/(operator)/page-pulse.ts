import { cache } from 'react'
import { type Pulse, readPulse } from '#lib/operator/pulse.ts'
import { readIfReachable } from '#lib/operator/reading.ts'
import { service } from '#lib/server/services.ts'

/**
 * The pulse of the page that is being rendered, read once in a request and before anything else of the page: a record that
 * changes meanwhile makes the next pulse another one. Undefined while the database cannot be reached.
 */
export const readPagePulse = cache(async (): Promise<Pulse | undefined> => {
  const { database } = await service()
  return await readIfReachable(database, readPulse)
})
