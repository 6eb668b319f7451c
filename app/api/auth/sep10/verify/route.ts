import { signedChallenge, signInWithWallet } from '#lib/auth/sep10/sign-in.ts'
import { admitSession } from '#lib/directory/user.ts'
import { readJson } from '#lib/http/body.ts'
import { resource } from '#lib/http/resource.ts'
import { service } from '#lib/server/services.ts'

/** Exchanges a challenge that the wallet has signed for a session. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource({
  POST: async (request) => {
    const desk = await service()
    const { settings, network, database, now } = desk
    const { transaction } = await readJson(request, signedChallenge)
    const given = { rpc: network.server, sep10: settings.sep10, sessions: settings.sessions }
    return admitSession(desk, await signInWithWallet(await database(), given, transaction, now()))
  },
})
