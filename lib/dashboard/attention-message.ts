import { age } from '#lib/text/figures.ts'
import type { Attention } from './attention.ts'

/** The title of an item: the records that it is about, and the condition. 'Night shift · Acme: 4 of 7 unpaid for 3 h'. */
export function titleOf(item: Attention, now: Date): string {
  const { name, batch, organisation, what, since, isOngoing } = item
  const records = [name ?? batch?.name, organisation?.name].filter((one) => one !== undefined).join(' · ')
  const title = records === '' ? `${what.slice(0, 1).toUpperCase()}${what.slice(1)}` : `${records}: ${what}`
  return isOngoing && since ? `${title} for ${age(since, now)}` : title
}

/** What the organisation's users are told about an item. */
interface Message {
  /** the next step */
  request: string
  /** the facts, and the next step */
  body: string
  /** a mailto URL (RFC 6068) with the body; undefined if no user has an email, or the stored one is not to be trusted */
  mail: string | undefined
}

/** Composes the message about an item; undefined if nothing is asked of the users. */
export function messageAbout(item: Attention, now: Date): Message | undefined {
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
  const body = [...facts, '', request].join('\r\n')
  const emails = (item.users ?? []).flatMap(({ email }) => (email === null ? [] : encodeURIComponent(email)))
  const mail = `mailto:${emails.join(',')}?subject=${encodeURIComponent(subject)}&body=${encodeURIComponent(body)}`
  return { request, body, mail: item.request === undefined || emails.length === 0 ? undefined : mail }
}
