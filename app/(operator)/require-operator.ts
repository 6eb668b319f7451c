import { cookies } from 'next/headers'
import { redirect } from 'next/navigation'
import { isOperatorSession } from '#lib/auth/operator.ts'
import { type Service, service } from '#lib/service.ts'
import { operatorCookies } from './operator-cookies.ts'

/** Lets nobody past but the operator. Every page and every action calls it for itself. `here` is where to come back to. */
export async function requireOperator(here: string): Promise<Service> {
  const jar = await cookies()
  const running = await service()
  const { operator, publicUrl } = running.settings
  const token = jar.get(operatorCookies(publicUrl).session)?.value
  if (operator && (await isOperatorSession(operator, token, running.now()))) return running
  redirect(`/sign-in?to=${encodeURIComponent(here)}`)
}
