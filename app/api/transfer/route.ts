import { z } from 'zod'
import { identifyCaller } from '#lib/auth/caller.ts'
import { readJson, resource } from '#lib/http.ts'
import { service } from '#lib/service.ts'
import { requirePayer, requireSponsor, sponsorTransfer } from '#lib/sponsor/transfer.ts'

const body = z.object({ signedXDR: z.string('signedXDR required').min(1, 'signedXDR required') }, 'signedXDR required')

/** Sponsors a confidential transfer that the caller has built and signed, and waits for the ledger. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource(
  {
    POST: async (request) => {
      const { settings, sponsor, database, now } = await service()
      const payer = requirePayer(await identifyCaller(settings.sessions, request, now()))
      const ready = requireSponsor(sponsor)
      const { signedXDR } = await readJson(request, body)
      return sponsorTransfer(await database(), ready, payer, signedXDR)
    },
  },
  { failure: 'transfer failed' },
)
