import type { AmountRow } from '#lib/sdk/payees.ts'
import { parseUnits } from '#lib/text/money.ts'

/**
 * Reads the employer's list: `contractor,amount` or `contractor,amount,address` on each line, with or without a heading
 * line.
 * @throws Error that names the line, never its amount
 */
export function readAmounts(text: string): AmountRow[] {
  const lines = text.split(/\r?\n/).map((line) => line.trim())
  const rows = lines.flatMap((line, index) => {
    if (line === '' || (index === 0 && /^"?contractor"?\s*,/i.test(line))) return []
    const [contractor = '', amount = '', address, ...others] = line
      .split(',')
      .map((cell) => cell.trim().replace(/^"(.*)"$/, '$1'))
    if (contractor === '' || others.length > 0 || !/^\d{1,9}(\.\d{1,7})?$/.test(amount) || parseUnits(amount) === 0n) {
      throw new Error(`line ${index + 1} of the amounts is not contractor,amount[,address] with an amount such as 12.5`)
    }
    return [{ contractor, amount: parseUnits(amount), address: address || undefined }]
  })
  if (rows.length === 0) throw new Error('the file of amounts has no lines')
  return rows
}
