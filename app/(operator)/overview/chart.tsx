import type { ReactNode } from 'react'

/** Width of one hour and height of the whole, in units of the drawing, which is stretched to its place. */
export const HOUR = 10
export const HEIGHT = 100

interface ChartProps {
  title: string
  /** what it shows, in a sentence */
  summary: string
  /** the value at the top of the drawing */
  top: string
  hours: readonly Date[]
  /** SVG, 24 × HOUR wide and HEIGHT high */
  drawing: ReactNode
  /** the same as a table: heads, and a row for each hour */
  heads: readonly string[]
  rows: readonly (readonly string[])[]
}

/** A small chart of the last 24 hours, with its figures as a table beneath. */
export function Chart({ title, summary, top, hours, drawing, heads, rows }: ChartProps) {
  const hourOf = (at: Date | undefined) => at?.toISOString().slice(11, 16) ?? ''
  return (
    <section className="rounded-lg border border-line bg-surface p-4 shadow-card sm:p-5">
      <h2 className="font-semibold">{title}</h2>
      <p className="text-[0.8125rem] text-soft">{summary}</p>
      <div className="mt-4 text-[0.6875rem] text-faint" aria-hidden="true">
        <div className="flex items-center gap-2 leading-none">
          {top}
          <span className="h-px flex-1 bg-line" />
        </div>
        <svg
          aria-hidden="true"
          viewBox={`0 0 ${24 * HOUR} ${HEIGHT}`}
          preserveAspectRatio="none"
          className="h-28 w-full overflow-visible"
        >
          {drawing}
        </svg>
        <div className="flex justify-between border-t border-edge pt-1">
          <span>{hourOf(hours[0])}</span>
          <span>{hourOf(hours[6])}</span>
          <span>{hourOf(hours[12])}</span>
          <span>{hourOf(hours[18])}</span>
          <span>now</span>
        </div>
      </div>
      <details className="mt-2 text-[0.8125rem]">
        <summary className="w-fit rounded text-faint hover:text-ink">As a table</summary>
        <div className="mt-2">
          <table className="w-full">
            <thead>
              <tr className="text-left text-xs text-faint">
                {heads.map((head) => (
                  <th key={head} scope="col" className="pb-1 font-medium">
                    {head}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row[0]}>
                  {row.map((cell, column) => (
                    <td key={heads[column]}>{cell}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </section>
  )
}
