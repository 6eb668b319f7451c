/**
 * Spreadsheets run a cell that begins with one of these characters as a formula (OWASP, "CSV Injection"); a leading
 * apostrophe prevents that. Some programs first trim white space, drop characters without a glyph (DI: Default
 * Ignorable Code Point), or convert full-width forms to ASCII.
 */
const FORMULA = /^\s*[=+\-@＝＋－＠\t\r\p{DI}]/u

/** The place before such a character where a program that separates fields by semicolons or tabs begins a cell. */
const INNER_FORMULA = /(?<=[;\t]"?)(?=[\s\p{DI}]*[=+\-@＝＋－＠])/gu

/** The byte-order mark with which spreadsheets recognize UTF-8. */
export const BOM = '\ufeff'

/** Encodes a field (RFC 4180) so that no spreadsheet runs it as a formula. */
export function csvField(value: string | number | boolean | Date | null | undefined): string {
  if (value === null || value === undefined) return ''
  const text = value instanceof Date ? value.toISOString() : String(value)
  const whole = typeof value === 'string' && FORMULA.test(text) ? `'${text}` : text
  const safe = typeof value === 'string' ? whole.replaceAll(INNER_FORMULA, "'") : whole
  return /[",;\t\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

export type CsvValue = Parameters<typeof csvField>[0]

export const csvRecord = (values: readonly CsvValue[]): string => `${values.map(csvField).join(',')}\r\n`
