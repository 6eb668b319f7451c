import { formatUnits } from './money.ts'

/** 1234567n → '1,234,567'. */
export function groupDigits(whole: string | number | bigint): string {
  return String(whole).replace(/\B(?=(\d{3})+$)/g, ',')
}

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

/** How long ago, in one unit: '12 s', '3 min', '5 h', '4 days'. */
export function age(at: Date, now: Date): string {
  const elapsed = Math.max(0, Math.floor((now.getTime() - at.getTime()) / 1000))
  if (elapsed < 60) return `${elapsed} s`
  if (elapsed < 3600) return `${Math.floor(elapsed / 60)} min`
  if (elapsed < 48 * 3600) return `${Math.floor(elapsed / 3600)} h`
  return `${Math.floor(elapsed / 86_400)} days`
}
