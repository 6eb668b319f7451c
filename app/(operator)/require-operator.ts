import type { Route } from 'next'
import { cookies } from 'next/headers'
import { redirect } from 'next/navigation'
import { cache } from 'react'
import { readOperatorSession } from '#lib/auth/operator.ts'
import { isConfigurationError } from '#lib/config/environment.ts'
import { type Pulse, readPulse } from '#lib/dashboard/pulse.ts'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import { type Service, service } from '#lib/server/services.ts'

/** Redirects everyone but the operator to the sign-in page. Every page calls it. `here` is the path to return to. */
export async function requireOperator(here: string): Promise<Service> {
  if (!(await hasStarted())) redirect('/')
  const running = (await readOperator()) ?? redirect(signInAddress(here))
  await readPagePulse()
  return running
}

/**
 * Whether the service runs. A deployment that lacks a variable still serves its pages; the home page names the missing
 * variables.
 */
export async function hasStarted(): Promise<boolean> {
  try {
    await service()
    return true
  } catch (error) {
    if (isConfigurationError(error)) return false
    throw error
  }
}

/** The service, if the operator is signed in. */
export async function readOperator(): Promise<Service | undefined> {
  return (await readOperatorName()) === undefined ? undefined : await service()
}

/** The name of the operator who is signed in. */
export async function readOperatorName(): Promise<string | undefined> {
  const jar = await cookies()
  const running = await service()
  const { operator, publicUrl } = running.settings
  const token = jar.get(operatorCookies(publicUrl).session)?.value
  return operator && (await readOperatorSession(operator, token, running.now()))
}

/** The address of the sign-in page that returns to `here`. */
export function signInAddress(here: string): Route {
  return `/sign-in?to=${encodeURIComponent(here)}`
}

/**
 * The names of the operator's cookies. Over https, the prefix binds them to this exact host. Without https that prefix
 * isn't allowed. The name then includes the port, since cookies are shared by all services on a host.
 */
export function operatorCookies(publicUrl: string): { session: string; browser: string; secure: boolean } {
  const { protocol, port } = new URL(publicUrl)
  const secure = protocol === 'https:'
  const name = (role: string) => (secure ? `__Host-${role}` : `${role}-${port || '80'}`)
  return { session: name('operator'), browser: name('operator-browser'), secure }
}

/**
 * The pulse of the page that is being rendered, read once per request, before anything else: if a record changes during
 * rendering, the next pulse differs and the page reloads. Undefined while the database cannot be reached.
 */
export const readPagePulse = cache(async (): Promise<Pulse | undefined> => {
  const { database } = await service()
  return await readIfReachable(database, readPulse)
})
