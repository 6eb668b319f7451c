import { type Session, verifySession } from '#lib/auth/session.ts'
import { requireSecret } from '#lib/auth/shared-secret.ts'
import type { Database } from '#lib/db/connection.ts'
import { requireAccess } from '#lib/directory/contractors/contractors.ts'
import {
  admitUser,
  becomeEmployer,
  type Employer,
  requireEmployer,
  requireFounder,
  type User,
} from '#lib/directory/users.ts'
import { readBearer } from '#lib/http/bearer.ts'
import type { RefusalCode } from '#lib/refusal/refusal.ts'
import type { Service } from '#lib/server/services.ts'

/** A session, the user that it belongs to, and the database that the user was found in. */
interface KnownUser {
  session: Session
  db: Database
  user: User
}

/** The data that a handler gets of each kind of caller. */
interface KnownOf {
  anybody: object
  /** the holder of a session */
  session: { session: Session }
  /** the holder of a session, looked up in the directory once configuration and body are good */
  user: KnownUser
  employer: KnownUser & { employer: Employer }
  /** an employer, or a user who becomes one by a first record, once the request is found good */
  founder: KnownUser & { employer: Employer }
  /** an employer, or the user that the contractor record `id` is linked to */
  participant: KnownUser
  /** a caller that has METRICS_TOKEN */
  metrics: object
  /** a caller that has CRON_SECRET */
  scheduler: object
}
export type CallerName = keyof KnownOf
export type Known<Caller extends CallerName> = KnownOf[Caller]

/** The callers that need a role: they are looked up before the rest of the request is judged. */
const ROLES = {
  employer: (user: User) => ({ employer: requireEmployer(user) }),
  founder: (user: User) => requireFounder(user),
  participant: (user: User, { id = '' }: Record<string, string>) => requireAccess(user, id),
} as const

const SESSION: readonly RefusalCode[] = ['bearer-missing', 'bearer-invalid', 'session-expired']
const ROLE: readonly RefusalCode[] = ['employer-required', 'provider-mismatch']

/** Each kind of caller in the OpenAPI document: its security scheme, its role, and the refusals that it implies. */
export const CALLERS = {
  anybody: { scheme: undefined, refusals: [] },
  session: { scheme: 'session', refusals: SESSION },
  user: { scheme: 'session', refusals: [...SESSION, 'provider-mismatch'] },
  employer: { scheme: 'session', role: 'employer', refusals: [...SESSION, ...ROLE] },
  founder: { scheme: 'session', role: 'employer', refusals: [...SESSION, ...ROLE] },
  participant: { scheme: 'session', role: 'employer or contractor', refusals: [...SESSION, ...ROLE] },
  metrics: { scheme: 'metrics', refusals: ['bearer-missing', 'bearer-invalid'] },
  scheduler: { scheme: 'scheduler', refusals: ['bearer-missing', 'bearer-invalid'] },
} as const satisfies Record<
  CallerName,
  { scheme: 'session' | 'metrics' | 'scheduler' | undefined; role?: string; refusals: readonly RefusalCode[] }
>

/** The callers that are machines: the setting that holds their secret, and the refusals if it is unset or wrong. */
const MACHINES = {
  metrics: {
    setting: 'metricsToken',
    code: 'metrics-not-configured',
    unset: 'metrics are not configured',
    wrong: 'invalid metrics token',
  },
  scheduler: {
    setting: 'cronSecret',
    code: 'cron-not-configured',
    unset: 'no CRON_SECRET is configured',
    wrong: 'invalid scheduler token',
  },
} as const

const isRole = (caller: CallerName): caller is keyof typeof ROLES => caller in ROLES

/**
 * Identifies the sender of `request` by its token, and requires the caller's role if it has one.
 * @throws Refusal 401; 403 for the wrong role
 */
export async function identify(
  caller: CallerName,
  service: Service,
  request: Request,
  params: Record<string, string>,
): Promise<object> {
  const { settings, now } = service
  if (caller === 'anybody') return {}
  if (caller === 'metrics' || caller === 'scheduler') {
    const machine = MACHINES[caller]
    requireSecret(settings[machine.setting], request, machine)
    return {}
  }
  const session = await verifySession(settings.sessions, readBearer(request), now())
  if (!isRole(caller)) return { session }
  const known = await lookUp(service, session)
  return { ...known, ...ROLES[caller](known.user, params) }
}

async function lookUp(service: Service, session: Session): Promise<KnownUser> {
  const db = await service.database()
  return { session, db, user: await admitUser({ db, now: service.now() }, session) }
}

/**
 * Completes `identify` once configuration and body are good: a `user` is looked up, and a `founder` gets an
 * organisation.
 * @throws Refusal 403 when the sub belongs to a user of another identity provider
 */
export async function admit(caller: CallerName, service: Service, known: object): Promise<object> {
  if (caller === 'user') return await lookUp(service, (known as Known<'session'>).session)
  if (caller !== 'founder') return known
  const user = known as KnownUser
  return { ...user, employer: await becomeEmployer({ db: user.db, now: service.now() }, user.user) }
}
