import { identifyCaller } from '#lib/auth/caller.ts'
import { readJson } from '#lib/http/body.ts'
import { resource } from '#lib/http/resource.ts'
import { service } from '#lib/server/services.ts'
import { requireSponsor } from '#lib/sponsor/sponsor.ts'
import { requirePayer, sponsorTransfer, transferRequest } from '#lib/sponsor/transfer.ts'

/** Sponsors a confidential transfer that the caller has built and signed, and waits for the ledger. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource(
  {
    POST: async (request) => {
      const { settings, sponsor, database, now } = await service()
      const payer = requirePayer(await identifyCaller(settings.sessions, request, now()))
      const ready = requireSponsor(sponsor)
      const transfer = await readJson(request, transferRequest)
      return sponsorTransfer(await database(), ready, payer, transfer)
    },
  },
  { failure: 'transfer failed' },
)
