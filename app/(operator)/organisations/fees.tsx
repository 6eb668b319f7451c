import type { ReactNode } from 'react'
import type { OrganisationLine } from '#lib/dashboard/organisations.ts'
import { groupDigits, xlm } from '#lib/text/figures.ts'

/**
 * What the sponsor was charged for an organisation's transfers of a range, and how many there were.
 * @param places how many decimals are shown at most; all of them by default
 */
export function describeFees(
  { transfers, failed, fees }: OrganisationLine['costs']['24h'],
  places?: number,
): ReactNode {
  if (transfers === 0) return '–'
  const counts = [
    `${groupDigits(transfers)} ${transfers === 1 ? 'transfer' : 'transfers'}`,
    `${groupDigits(failed)} failed`,
  ]
  return (
    <>
      <span className="whitespace-nowrap tabular-nums">{xlm(fees, places)} XLM</span>
      {counts.slice(0, failed > 0 ? 2 : 1).map((count) => (
        <span key={count} className="block text-xs whitespace-nowrap text-faint">
          {count}
        </span>
      ))}
    </>
  )
}
