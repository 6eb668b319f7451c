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

/** A session and its user. */
interface UserPrincipal {
  session: Session
  db: Database
  user: User
}

/** The properties that each kind of caller adds to a handler's input. */
interface Principals {
  anybody: object
  /** the holder of a session */
  session: { session: Session }
  /** the session's user, looked up in the directory after configuration and body are checked */
  user: UserPrincipal
  employer: UserPrincipal & { employer: Employer }
  /** an employer, or a user who becomes one by creating a first record; looked up after the request is checked */
  founder: UserPrincipal & { employer: Employer }
  /** an employer, or the user linked to the contractor record `id` */
  participant: UserPrincipal
  /** a caller with METRICS_TOKEN */
  metrics: object
  /** a caller with CRON_SECRET */
  scheduler: object
}
export type CallerName = keyof Principals
export type Principal<Caller extends CallerName> = Principals[Caller]

/** The callers that need a role. They are looked up before the rest of the request is checked. */
const ROLES = {
  employer: (user: User) => ({ employer: requireEmployer(user) }),
  founder: (user: User) => requireFounder(user),
  participant: (user: User, { id = '' }: Record<string, string>) => requireAccess(user, id),
} as const

const SESSION: readonly RefusalCode[] = ['bearer-missing', 'bearer-invalid', 'session-expired', 'rate-limited']
const ROLE: readonly RefusalCode[] = ['employer-required', 'provider-mismatch']

/** Each kind of caller in the OpenAPI document: its security scheme, its role and the refusals it implies. */
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
 * Checks the token of `request`. Resolves to its session if the caller has one.
 * @throws Refusal 401
 */
export async function authenticate(
  caller: CallerName,
  { settings, now }: Service,
  request: Request,
): Promise<Session | undefined> {
  if (caller === 'anybody') return undefined
  if (caller === 'metrics' || caller === 'scheduler') {
    const machine = MACHINES[caller]
    requireSecret(settings[machine.setting], request, machine)
    return undefined
  }
  return await verifySession(settings.sessions, readBearer(request), now())
}

/**
 * Checks the role of callers that need one.
 * @throws Refusal 403
 */
export async function identify(
  caller: CallerName,
  service: Service,
  session: Session | undefined,
  params: Record<string, string>,
): Promise<object> {
  if (session === undefined) return {}
  if (!isRole(caller)) return { session }
  const principal = await lookUp(service, session)
  return { ...principal, ...ROLES[caller](principal.user, params) }
}

async function lookUp(service: Service, session: Session): Promise<UserPrincipal> {
  const db = await service.database()
  return { session, db, user: await admitUser({ db, now: service.now() }, session) }
}

/**
 * Completes `identify` after configuration and body are checked: looks up a `user`, and gives a `founder` an organisation.
 * @throws Refusal 403 if the sub belongs to a user of another identity provider
 */
export async function admit(caller: CallerName, service: Service, principal: object): Promise<object> {
  if (caller === 'user') return await lookUp(service, (principal as Principal<'session'>).session)
  if (caller !== 'founder') return principal
  const user = principal as UserPrincipal
  return { ...user, employer: await becomeEmployer({ db: user.db, now: service.now() }, user.user) }
}
