import { MAX_COUNTED } from '#lib/db/count.ts'
import { formatUnits } from '#lib/text/money.ts'

/** 1234567n → '1,234,567'. */
export function groupDigits(whole: string | number | bigint): string {
  return String(whole).replace(/\B(?=(\d{3})+$)/g, ',')
}

/** A number of records, which lists count up to MAX_COUNTED: '1,234', or '10,000+'. */
export const counted = (count: number): string =>
  count > MAX_COUNTED ? `${groupDigits(MAX_COUNTED)}+` : groupDigits(count)

/**
 * Formats a decimal for people: with thousands separators, and at least two decimals and at most `places`, truncated.
 */
export function readable(decimal: string, places = 7): string {
  const [whole = '0', fraction = ''] = decimal.split('.')
  const decimals = fraction.slice(0, places).replace(/0+$/, '').padEnd(2, '0')
  return `${groupDigits(whole)}.${decimals}`
}

/** Formats stroops as XLM. A non-zero amount never shows as zero. */
export function xlm(stroops: bigint, places = 7): string {
  const figure = readable(formatUnits(stroops), places)
  return stroops > 0n && !/[1-9]/.test(figure) ? readable(formatUnits(stroops)) : figure
}

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

/** How long ago, in one unit: '12 s', '3 min', '5 h', '4 days'. */
export function age(at: Date, now: Date): string {
  const elapsed = Math.max(0, Math.floor((now.getTime() - at.getTime()) / 1000))
  if (elapsed < 60) return `${elapsed} s`
  if (elapsed < 3600) return `${Math.floor(elapsed / 60)} min`
  if (elapsed < 48 * 3600) return `${Math.floor(elapsed / 3600)} h`
  return `${Math.floor(elapsed / 86_400)} days`
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** Formats a day: '3 Nov'. */
export const dayOf = (at: Date): string => `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}`

/** How long ago, and unless `isShort` the exact UTC time: today's without the date. A pointer shows it in any case. */
export function Moment({ at, now, isShort = false }: { at: Date; now: Date; isShort?: boolean }) {
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
