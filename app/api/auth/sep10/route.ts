import { buildChallenge, challengeQuery } from '#lib/auth/sep10/challenge.ts'
import { signedChallenge, signInWithWallet } from '#lib/auth/sep10/sign-in.ts'
import { admitSession } from '#lib/directory/user.ts'
import { readJsonOrForm, readQuery } from '#lib/http/body.ts'
import { resource } from '#lib/http/resource.ts'
import { service } from '#lib/server/services.ts'

/**
 * The one URL of SEP-10 that stellar.toml names: GET gives a challenge, POST a token for it. SEP-10 wants every origin to
 * reach it: wallets run anywhere, whatever CORS_ORIGINS says of payroll.
 */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource(
  {
    GET: async (request) => {
      const { settings, now } = await service()
      return buildChallenge(settings.sep10, readQuery(request, challengeQuery), now())
    },
    POST: async (request) => {
      const desk = await service()
      const { settings, network, database, now } = desk
      const { transaction } = await readJsonOrForm(request, signedChallenge)
      const given = { rpc: network.server, sep10: settings.sep10, sessions: settings.sessions }
      const session = await admitSession(desk, await signInWithWallet(await database(), given, transaction, now()))
      return { token: session.session, ...session }
    },
  },
  { readers: 'everybody' },
)
