import type { Attention } from '#lib/dashboard/attention.ts'
import { age } from './figures.tsx'

/** The title of an item: the records that it is about, and the condition. 'Night shift · Acme: 4 of 7 unpaid for 3 h'. */
export function titleOf(item: Attention, now: Date): string {
  const { name, batch, organisation, what, since, isOngoing } = item
  const records = [name ?? batch?.name, organisation?.name].filter((one) => one !== undefined).join(' · ')
  const title = records === '' ? `${what.slice(0, 1).toUpperCase()}${what.slice(1)}` : `${records}: ${what}`
  return isOngoing && since ? `${title} for ${age(since, now)}` : title
}

/**
 * A mailto URL (RFC 6068) that asks the organisation's users for the item's next step; undefined if the item asks nothing
 * of them, or none has an email.
 */
export function mailAbout(item: Attention, now: Date): string | undefined {
  const { users = [], request, since, why } = item
  const recipients = users.flatMap(({ email }) => (email === null ? [] : encodeURIComponent(email)))
  if (request === undefined || recipients.length === 0) return undefined
  const title = titleOf(item, now)
  const facts = [
    `${title}.`,
    ...(since ? [`Since: ${since.toISOString().slice(0, 16).replace('T', ' ')} UTC.`] : []),
    ...(why === '' ? [] : [`Why: ${why}.`]),
  ]
  const body = [...facts, '', request].join('\r\n')
  return `mailto:${recipients.join(',')}?subject=${encodeURIComponent(title)}&body=${encodeURIComponent(body)}`
}
