'use server'

import { cookies } from 'next/headers'
import { redirect } from 'next/navigation'
import { operatorCookies } from './operator-cookies.ts'
import { requireOperator } from './require-operator.ts'

/** Ends the operator's session in this browser. */
export async function signOut(): Promise<void> {
  const { settings } = await requireOperator('/overview')
  const jar = await cookies()
  const { session, secure } = operatorCookies(settings.publicUrl)
  // A browser keeps a cookie of this prefix unless it is taken away on the terms on which it was set.
  jar.set(session, '', { httpOnly: true, sameSite: 'lax', secure, path: '/', maxAge: 0 })
  redirect('/sign-in?problem=out')
}
