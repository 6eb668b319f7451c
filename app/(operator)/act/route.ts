import { resource } from '#lib/api/resource.ts'
import { isOwnForm } from '#lib/auth/form-origin.ts'
import { readForm } from '#lib/http/body.ts'
import { ACTION_FORM, act } from '#lib/server/operator-actions.ts'
import { service } from '#lib/server/services.ts'
import { foreignForm, isOwnPage, notDone, seeOther } from '../form-answers.ts'
import { readOperatorName, signInAddress } from '../require-operator.ts'

/** Handles the forms with which operators act on a record. The audit log shows who did it and why. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource(
  {
    POST: async (request) => {
      const running = await service()
      const { publicUrl } = running.settings
      if (!isOwnForm(request.headers, publicUrl)) return foreignForm(publicUrl)
      const name = await readOperatorName()
      if (name === undefined) return seeOther(signInAddress('/overview'))
      const input = await readForm(request, ACTION_FORM)
      const back = isOwnPage(input.back) ? input.back : '/overview'
      const problem = await act(running, name, input)
      return problem === undefined ? seeOther(back) : notDone(problem, back)
    },
    // A browser sends a GET when it reopens the address of the form.
    GET: async () => seeOther('/overview'),
  },
  { readers: 'ourselves' },
)
