import { buildChallenge, challengeQuery } from '#lib/auth/sep10/challenge.ts'
import { readQuery } from '#lib/http/body.ts'
import { resource } from '#lib/http/resource.ts'
import { service } from '#lib/server/services.ts'

/** A SEP-10 challenge for `account` to sign. Nothing is stored. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource({
  GET: async (request) => {
    const { settings, now } = await service()
    return buildChallenge(settings.sep10, readQuery(request, challengeQuery), now())
  },
})
