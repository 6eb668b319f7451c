import type { Metadata } from 'next'
import { connection } from 'next/server'
import { readQuery } from '#app/(operator)/query.ts'
import { BrandMark } from '#app/brand-mark.tsx'
import { missing } from '#app/missing.ts'
import NotFound from '#app/not-found.tsx'
import { readMailToken } from '#lib/events/payment-mail.ts'
import { service } from '#lib/server/services.ts'

export const metadata: Metadata = { title: 'Mails at a payment', robots: { index: false }, referrer: 'no-referrer' }

/** Asks whether to stop the mails: mail programs open links by themselves, so opening the page changes nothing. */
export default async function MailPage({ params, searchParams }: PageProps<'/mail/[token]'>) {
  await connection()
  const { settings } = await service()
  const { token } = await params
  if (readMailToken(settings.paymentMails.secret, token) === undefined) return missing(<NotFound />)
  const { stopped } = await readQuery(searchParams)
  return (
    <main className="mx-auto flex min-h-dvh max-w-md flex-col justify-center px-6 py-16">
      <p className="mb-8 flex items-center gap-2.5 font-medium">
        <BrandMark />
        Confidential payroll
      </p>
      <h1 className="text-2xl font-semibold tracking-tight">
        {stopped ? 'These mails have stopped' : 'Stop mails at a payment?'}
      </h1>
      <p className="mt-3 text-soft text-pretty">
        {stopped
          ? 'No organisation’s payments to you are mailed any more. You are still paid, and your wallet shows each payment.'
          : 'You get a mail when an organisation pays you, at most one an hour. Without them you are still paid, and your wallet shows each payment.'}
      </p>
      {!stopped && (
        <form method="post" action={`/mail/${token}/stop`} className="mt-6">
          <input type="hidden" name="page" value="1" />
          <button
            type="submit"
            className="w-full rounded-md bg-accent px-4 py-2 font-medium text-on-accent transition-colors hover:bg-accent-strong"
          >
            Stop these mails
          </button>
        </form>
      )}
    </main>
  )
}
