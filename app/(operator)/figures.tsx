import { MAX_COUNTED } from '#lib/db/count.ts'
import { age, groupDigits } from '#lib/text/figures.ts'

/** What figures are shown with. */
export interface View {
  now: Date
  network: string
}

/** A number of records, which lists count up to MAX_COUNTED: '1,234', or '10,000+'. */
export const counted = (count: number): string =>
  count > MAX_COUNTED ? `${groupDigits(MAX_COUNTED)}+` : groupDigits(count)

/** 0.84 → '0.8 s', 75 → '1 min 15 s'. */
export function seconds(value: number): string {
  if (value < 60) return `${value.toFixed(1)} s`
  const whole = Math.round(value)
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`
}

/** The time between two timestamps. */
export function between(start: Date, end: Date): string {
  return seconds(Math.max(0, end.getTime() - start.getTime()) / 1000)
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** Formats a day: '3 Nov'. */
export const dayOf = (at: Date): string => `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}`

interface MomentProps extends Pick<View, 'now'> {
  at: Date
  isShort?: boolean | undefined
}

/** How long ago, and unless `isShort` the exact UTC time: today's without the date. A pointer shows it in any case. */
export function Moment({ at, now, isShort = false }: MomentProps) {
  const iso = at.toISOString()
  const isToday = iso.slice(0, 10) === now.toISOString().slice(0, 10)
  const year = at.getUTCFullYear() === now.getUTCFullYear() ? '' : ` ${at.getUTCFullYear()}`
  return (
    <time dateTime={iso} title={`${iso.slice(0, 10)} ${iso.slice(11, 23)} UTC`}>
      <span className="whitespace-nowrap">{age(at, now)} ago</span>{' '}
      {!isShort && (
        <span className="text-xs whitespace-nowrap text-faint">
          {isToday ? iso.slice(11, 19) : `${dayOf(at)}${year}, ${iso.slice(11, 16)}`} UTC
        </span>
      )}
    </time>
  )
}
