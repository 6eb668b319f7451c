import { z } from 'zod'
import { resource } from '#lib/api/resource.ts'
import { readMailToken, stopMails } from '#lib/events/payment-mail.ts'
import { ignoreBody, readJsonOrForm } from '#lib/http/body.ts'
import { requireRequestLeft } from '#lib/http/request-limit.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { service } from '#lib/server/services.ts'

interface Context {
  params: Promise<{ token: string }>
}

/** The form of our page says so. Everything else is a mail program, which follows no redirect (RFC 8058). */
const FORM = z.looseObject({ page: z.string().optional() })

async function isOfPage(request: Request): Promise<boolean> {
  const isForm = request.headers.get('content-type')?.startsWith('application/x-www-form-urlencoded')
  if (isForm) return (await readJsonOrForm(request, FORM)).page !== undefined
  await ignoreBody(request)
  return false
}

const to = (token: string, query = '') =>
  new Response(null, { status: 303, headers: { Location: `/mail/${encodeURIComponent(token)}${query}` } })

/** Stops mails at a payment, for the form of the page above and for mail programs (RFC 8058), which send no cookie and no origin. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource<Context>(
  {
    GET: async (_, { params }) => to((await params).token),
    POST: async (request, { params }) => {
      requireRequestLeft(request.headers, 'session')
      const isPage = await isOfPage(request)
      const { token } = await params
      const { settings, database } = await service()
      const person = readMailToken(settings.paymentMails.secret, token)
      if (person === undefined) throw new Refusal('invite-not-found', 'this link stops nothing')
      await stopMails(await database(), person)
      return isPage ? to(token, '?stopped=1') : new Response(null, { status: 204 })
    },
  },
  { readers: 'ourselves' },
)
