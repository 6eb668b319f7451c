import type { Attention } from '#lib/dashboard/attention.ts'
import { age } from './figures.tsx'

/** The title of an item: the records that it is about, and the condition. 'Night shift · Acme: 4 of 7 unpaid for 3 h'. */
export function titleOf(item: Attention, now: Date): string {
  const { name, batch, organisation, what, since, isOngoing } = item
  const records = [name ?? batch?.name, organisation?.name].filter((one) => one !== undefined).join(' · ')
  const title = records === '' ? `${what.slice(0, 1).toUpperCase()}${what.slice(1)}` : `${records}: ${what}`
  return isOngoing && since ? `${title} for ${age(since, now)}` : title
}

/** What the organisation's users are told about an item: its facts, and the next step. Undefined if nothing is asked of them. */
export function messageAbout(item: Attention, now: Date): { subject: string; body: string } | undefined {
  const { request = item.telling, since, why, contractors = [], recipients = [], moreContractors = 0 } = item
  if (request === undefined) return undefined
  const subject = titleOf(item, now)
  const payees = [...contractors.map(({ name }) => name), ...recipients]
  const rest = moreContractors > 0 ? ` and ${moreContractors} more` : ''
  const facts = [
    `${subject}.`,
    ...(since ? [`Since: ${since.toISOString().slice(0, 16).replace('T', ' ')} UTC.`] : []),
    ...(payees.length === 0 ? [] : [`Payees: ${payees.join(', ')}${rest}.`]),
    ...(why === '' ? [] : [`Why: ${why}.`]),
  ]
  return { subject, body: [...facts, '', request].join('\r\n') }
}

/** A mailto URL (RFC 6068) that requests the next step; undefined if nothing is requested, or no user has an email. */
export function mailAbout(item: Attention, now: Date): string | undefined {
  const recipients = (item.users ?? []).flatMap(({ email }) => (email === null ? [] : encodeURIComponent(email)))
  const message = messageAbout(item, now)
  if (!message || item.request === undefined || recipients.length === 0) return undefined
  const { subject, body } = message
  return `mailto:${recipients.join(',')}?subject=${encodeURIComponent(subject)}&body=${encodeURIComponent(body)}`
}
