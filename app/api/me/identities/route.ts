import { joinedIdentity, joinIdentity } from '#lib/directory/identities.ts'
import { describeMe } from '#lib/directory/me.ts'
import { identifyUser } from '#lib/directory/user.ts'
import { readJson } from '#lib/http/body.ts'
import { resource } from '#lib/http/resource.ts'
import { service } from '#lib/server/services.ts'

/** Brings another identity of the caller, proved by a session of it, into the caller's organisation. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource({
  POST: async (request) => {
    const desk = await service()
    const user = await identifyUser(desk, request)
    const { session } = await readJson(request, joinedIdentity)
    const db = await desk.database()
    const joined = await joinIdentity(db, desk.settings.sessions, user, session, desk.now())
    return describeMe(db, desk.settings.invites, joined, desk.now())
  },
})
