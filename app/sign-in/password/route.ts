import { cookies } from 'next/headers'
import { z } from 'zod'
import { foreignForm, isOwnPage, seeOther } from '#app/(operator)/form-answers.ts'
import { operatorCookies } from '#app/(operator)/require-operator.ts'
import { resource } from '#lib/api/resource.ts'
import { isOwnForm } from '#lib/auth/form-origin.ts'
import { BROWSER_SECONDS, OPERATOR_SESSION_SECONDS, readBrowser } from '#lib/auth/operator.ts'
import { drawSkip, signInOperator } from '#lib/auth/operator-sign-in.ts'
import { readForm } from '#lib/http/body.ts'
import { clientOf } from '#lib/http/client-address.ts'
import { takeTurn } from '#lib/http/fairness.ts'
import { requireRequestLeft } from '#lib/http/request-limit.ts'
import { service } from '#lib/server/services.ts'
import { plainText } from '#lib/text/plain-text.ts'
import { problemOf } from './problem.ts'

const form = z.object({
  name: z.string().default(''),
  password: z.string().default(''),
  to: z.string().default(''),
})

/** Who the operator is, for the audit log. */
const NAME = plainText(40)

/**
 * Signs in the operator if the password is right. Otherwise redirects to the page, which shows the reason. For form
 * posts, not for scripts.
 */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource(
  {
    POST: async (request) => {
      const { settings, database, now } = await service()
      const { operator, publicUrl } = settings
      if (!isOwnForm(request.headers, publicUrl)) return foreignForm(publicUrl)
      if (!operator) return seeOther('/sign-in')
      const names = operatorCookies(publicUrl)
      const jar = await cookies()
      const from = { browser: jar.get(names.browser)?.value, client: clientOf(request.headers) }
      const skipsWait = drawSkip()
      // Refusals wait for a turn. Otherwise a client that retries immediately would keep the process busy.
      const refuse = async (problem: string, back = '/overview') => {
        await takeTurn('refusal')
        // The fragment gives the field the focus, without JavaScript too.
        const field = problem === 'problem=name' ? 'name' : 'password'
        return seeOther(`/sign-in?${problem}&to=${encodeURIComponent(back)}#${field}`)
      }
      // Strangers at the operator's address cannot use up the attempts of a browser that has signed in before.
      if (!(await readBrowser(operator, from.browser, now()))) {
        try {
          requireRequestLeft(request.headers, skipsWait ? 'drawn-password' : 'password')
        } catch (error) {
          return await refuse(problemOf(error))
        }
      }
      const { password, to, ...given } = await readForm(request, form)
      const back = isOwnPage(to) ? to : '/overview'
      const name = NAME.safeParse(given.name.trim()).data
      if (name === undefined) return await refuse('problem=name', back)
      const context = { settings: operator, database, now: now() }
      const result = await signInOperator(context, { name, password, from, skipsWait }).catch(problemOf)
      if (typeof result === 'string') return await refuse(`${result}&name=${encodeURIComponent(name)}`, back)
      const terms = { httpOnly: true, sameSite: 'lax', secure: names.secure, path: '/' } as const
      jar.set(names.session, result.session, { ...terms, maxAge: OPERATOR_SESSION_SECONDS })
      jar.set(names.browser, result.browser, { ...terms, maxAge: BROWSER_SECONDS })
      return seeOther(back)
    },
    // A browser sends a GET when it reopens the form's address.
    GET: async () => seeOther('/sign-in'),
  },
  { readers: 'ourselves' },
)
