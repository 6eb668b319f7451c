'use server'

import type { Route } from 'next'
import { cookies } from 'next/headers'
import { redirect } from 'next/navigation'
import { operatorCookies } from '#app/(operator)/operator-cookies.ts'
import { BROWSER_SECONDS, OPERATOR_SESSION_SECONDS } from '#lib/auth/operator.ts'
import { signInOperator } from '#lib/auth/operator-sign-in.ts'
import { databaseFailure } from '#lib/db.ts'
import { Refusal } from '#lib/refusal.ts'
import { service } from '#lib/service.ts'

/** Lets the operator in who gives the password, and says on the page why not otherwise, with or without JavaScript. */
export async function signIn(form: FormData): Promise<void> {
  const { settings, database, now } = await service()
  const { operator, publicUrl } = settings
  const to = form.get('to')
  const back = typeof to === 'string' && isOwnPage(to) ? to : '/overview'
  if (!operator) redirect('/sign-in')
  const names = operatorCookies(publicUrl)
  const jar = await cookies()
  const password = form.get('password')
  try {
    const given = { password: typeof password === 'string' ? password : '', browser: jar.get(names.browser)?.value }
    const made = await signInOperator(await database(), operator, given, now())
    const terms = { httpOnly: true, sameSite: 'lax', secure: names.secure, path: '/' } as const
    jar.set(names.session, made.session, { ...terms, maxAge: OPERATOR_SESSION_SECONDS })
    jar.set(names.browser, made.browser, { ...terms, maxAge: BROWSER_SECONDS })
  } catch (error) {
    redirect(`/sign-in?${problemOf(error)}&to=${encodeURIComponent(back)}`)
  }
  redirect(back as Route)
}

/** A page of the operator's: nobody is led elsewhere after signing in. */
function isOwnPage(address: string): boolean {
  return /^\/(overview|batches|transfers|contractors|jobs|audit)(\/[\w-]+)?(\?[\w=&%.*+-]*)?$/.test(address)
}

function problemOf(error: unknown): string {
  const failure = databaseFailure(error)
  if (!(failure instanceof Refusal)) throw error
  if (failure.code === 'unauthenticated') return 'problem=wrong'
  if (failure.code === 'too-soon') return `problem=wait&seconds=${failure.retryAfter}`
  return 'problem=unavailable'
}
