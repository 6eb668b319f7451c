import { viewerOf } from '#lib/directory/payouts/payouts.ts'
import type { User } from '#lib/directory/user.ts'
import type { Service } from '#lib/server/services.ts'
import { refreshTransfers } from '#lib/submission/refresh.ts'

/** Refreshes the open transfers of everybody whose payouts `user` sees. An employer mostly has none, and is known to. */
export async function refreshTransfersOf(service: Service, user: User): Promise<void> {
  if (!user.hasOpenTransfers && user.records.length === 0) return
  await refreshTransfers(await service.database(), service.submission, viewerOf(user).organisations)
}
