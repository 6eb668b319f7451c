import { identifyCaller } from '#lib/auth/caller.ts'
import { fund, requireFaucet } from '#lib/funding/faucet.ts'
import { findLedgerAccount } from '#lib/funding/ledger-account.ts'
import { resource } from '#lib/http/resource.ts'
import { service } from '#lib/server/services.ts'

/** Mints test USDC into the caller's confidential balance, and waits for the ledger. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource({
  POST: async (request) => {
    const { settings, faucet, database, now } = await service()
    const session = await identifyCaller(settings.sessions, request, now())
    const ready = requireFaucet(faucet)
    const db = await database()
    return fund(db, ready, await findLedgerAccount(db, session, now()))
  },
})
