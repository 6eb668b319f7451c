import { z } from 'zod'
import { resource } from '#lib/api/resource.ts'
import { isOwnForm } from '#lib/auth/form-origin.ts'
import { resendInvite } from '#lib/directory/contractors/resend-invite.ts'
import { readForm } from '#lib/http/body.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { pauseChannel } from '#lib/relay/pause.ts'
import { directoryContext, type Service, service } from '#lib/server/services.ts'
import { plainText } from '#lib/text/plain-text.ts'
import { lookUpForOperator } from '#lib/transfers/operator-look-up.ts'
import { foreignForm, notDone, seeOther } from '../form-answers.ts'
import { isOwnPage } from '../own-page.ts'
import { readOperatorName, signInAddress } from '../require-operator.ts'

const FORM = z.object({
  action: z.enum(['pause-channel', 'resume-channel', 'look-up-transfer', 'resend-invite'], 'unknown action'),
  /** the id of the record, or the address of the channel */
  subject: z.string('subject required').min(1, 'subject required').max(100, 'subject too long'),
  note: z.union([z.literal(''), plainText('note', 200)]).default(''),
  back: z.string().default(''),
})

/** What operators do with a record, by the forms of its page. The audit log shows who did it and why. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource(
  {
    POST: async (request) => {
      const running = await service()
      const { publicUrl } = running.settings
      if (!isOwnForm(request.headers, publicUrl)) return foreignForm(publicUrl)
      const name = await readOperatorName()
      if (name === undefined) return seeOther(signInAddress('/overview'))
      const input = await readForm(request, FORM)
      const back = isOwnPage(input.back) ? input.back : '/overview'
      const problem = await act(running, name, input)
      return problem === undefined ? seeOther(back) : notDone(problem, back)
    },
    // A browser sends a GET when it reopens the address of the form.
    GET: async () => seeOther('/overview'),
  },
  { readers: 'ourselves' },
)

/** Resolves to the reason why nothing was done, if so. */
async function act(running: Service, name: string, input: z.output<typeof FORM>): Promise<string | undefined> {
  const { database, tracker, settings, now } = running
  const { action, subject, note } = input
  const context = { db: await database(), tracker, now: now(), actor: { kind: 'operator', sub: name } as const }
  if (action === 'look-up-transfer') {
    return (await lookUpForOperator(context, subject)) ? undefined : 'The transfer is not open any more.'
  }
  if (note === '') return 'Say why: the note goes to the audit log.'
  if (action === 'resend-invite') return await resend(running, { id: subject, actor: context.actor, note })
  const isPaused = action === 'pause-channel'
  if (await pauseChannel(context, { token: settings.token ?? '', address: subject, isPaused, note })) return undefined
  return `There is no such channel, or it is ${isPaused ? 'paused' : 'running'} already.`
}

async function resend(running: Service, input: Parameters<typeof resendInvite>[1]): Promise<string | undefined> {
  try {
    const isSent = await resendInvite(await directoryContext(running), input)
    return isSent ? undefined : 'No mail can be sent: SMTP_URL is not set, or the contractor has no email.'
  } catch (error) {
    if (error instanceof Refusal && error.code !== 'unavailable') return `It did not work: ${error.message}.`
    throw error
  }
}
