import { cookies } from 'next/headers'
import { resource } from '#lib/api/resource.ts'
import { isOwnForm } from '#lib/auth/form-origin.ts'
import { service } from '#lib/server/services.ts'
import { foreignForm, seeOther } from '../form-answers.ts'
import { operatorCookies, readOperator, signInAddress } from '../require-operator.ts'

/** Ends the operator's session in this browser. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource(
  {
    POST: async (request) => {
      const { publicUrl } = (await service()).settings
      if (!isOwnForm(request.headers, publicUrl)) return foreignForm(publicUrl)
      if (!(await readOperator())) return seeOther(signInAddress('/overview'))
      const jar = await cookies()
      const { session, secure } = operatorCookies(publicUrl)
      // A browser deletes a cookie with this prefix only if the attributes are the ones it was set with.
      jar.set(session, '', { httpOnly: true, sameSite: 'lax', secure, path: '/', maxAge: 0 })
      return seeOther('/sign-in?problem=out')
    },
    // A browser sends a GET when it reopens the address of the form.
    GET: async () => seeOther('/overview'),
  },
  { readers: 'ourselves' },
)
