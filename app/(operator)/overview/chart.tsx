import type { Route } from 'next'
import type { ReactNode } from 'react'
import type { Range, Traffic, TrafficPart } from '#lib/dashboard/traffic.ts'
import { dayOf } from '../figures.tsx'
import { PageLink, UNDERLINED } from '../record-links.tsx'

/** Width of one part and height of the drawing, in its units. The drawing is stretched to fit. */
export const PART = 10
export const HEIGHT = 100

/** How many parts lie between two labels of the axis: six hours, and a week. */
const LABEL_EVERY = { '24h': 6, '30d': 7 } as const satisfies Record<Range, number>

/** The meaning of a colour in the drawing. */
interface LegendEntry {
  word: string
  fill: string
}

interface ChartProps {
  title: string
  /** a one-sentence description */
  summary: string
  /** whether there is nothing to draw, so that the sentence is shown instead */
  isEmpty: boolean
  traffic: Traffic
  /** the labels of the axis at equal distances, from the bottom of the drawing to its top */
  ticks: readonly string[]
  /** a horizontal line at a share of the height, with its meaning */
  line?: { at: number; label: string } | undefined
  /** SVG, PART units wide per part and HEIGHT units high */
  drawing: ReactNode
  legend: readonly LegendEntry[]
  /** a note on values that the figures omit */
  note?: ReactNode
  /** the values of a part in words, by their heads */
  values: Record<string, (part: TrafficPart) => string>
  /** the list that a part counts; undefined for an empty part */
  listOf?: (part: TrafficPart) => Route | undefined
}

/** A small chart whose figures are shown under the pointer, and in a table below. */
export function Chart({ title, summary, traffic, ticks, line, drawing, legend, note, values, ...props }: ChartProps) {
  const { range, parts } = traffic
  const heads = ['From (UTC)', ...Object.keys(values)]
  const rows = parts.map((part) => ({
    cells: [labelOf(part.at, range), ...Object.values(values).map((wordsOf) => wordsOf(part))],
    list: props.listOf?.(part),
  }))
  if (props.isEmpty) {
    return (
      <section className="rounded-lg border border-line bg-surface p-4 shadow-card sm:p-5">
        <h2 className="font-semibold">{title}</h2>
        <p className="py-10 text-center text-soft">{summary}</p>
      </section>
    )
  }
  return (
    <section className="rounded-lg border border-line bg-surface p-4 shadow-card sm:p-5">
      <div className="flex flex-wrap items-baseline justify-between gap-x-4">
        <h2 className="font-semibold">{title}</h2>
        <ul aria-label="Legend" className="flex flex-wrap gap-x-3 text-xs text-soft">
          {legend.map(({ word, fill }) => (
            <li key={word}>
              <svg viewBox="0 0 8 8" aria-hidden="true" className="mr-1.5 inline size-2">
                <rect width="8" height="8" rx="1.5" fill={fill} />
              </svg>
              {word}
            </li>
          ))}
        </ul>
      </div>
      <p className="text-[0.8125rem] text-soft">{summary}</p>
      <div className="mt-5 flex gap-2 text-[0.6875rem] text-faint" aria-hidden="true">
        <div className="-my-1.5 flex h-31 flex-col-reverse justify-between text-right leading-3 whitespace-nowrap">
          {ticks.map((tick) => (
            <span key={tick} data-tick={tick}>
              {tick}
            </span>
          ))}
        </div>
        <div className="min-w-0 flex-1">
          <div className="relative border-b border-edge">
            {ticks.slice(1).map((tick, index) => (
              <div
                key={tick}
                className="absolute inset-x-0 border-t border-line"
                style={{ bottom: `${(100 * (index + 1)) / (ticks.length - 1)}%` }}
              />
            ))}
            <svg
              aria-hidden="true"
              viewBox={`0 0 ${parts.length * PART} ${HEIGHT}`}
              preserveAspectRatio="none"
              className="relative block h-28 w-full overflow-visible"
            >
              {drawing}
            </svg>
            {line && (
              <div
                data-line
                className="absolute inset-x-0 border-t border-dashed border-busy"
                style={{ bottom: `${100 * line.at}%` }}
              >
                <span className={`absolute left-1 text-busy ${line.at > 0.8 ? 'top-0.5' : 'bottom-0.5'}`}>
                  {line.label}
                </span>
              </div>
            )}
            <div className="absolute inset-0 flex">
              {rows.map((row, index) => (
                <Reading key={row.cells[0]} heads={heads} {...row} isLate={index >= parts.length / 2} />
              ))}
            </div>
          </div>
          <div className="relative mt-1 h-4">
            UTC
            {[3, 2, 1, 0].map((back) => (
              <AxisLabel key={back} part={parts.length - 1 - back * LABEL_EVERY[range]} traffic={traffic} />
            ))}
          </div>
        </div>
      </div>
      {note && <p className="mt-2 text-xs text-faint">{note}</p>}
      <details className="mt-2 text-[0.8125rem]">
        <summary className="w-fit rounded text-faint hover:text-ink">As a table</summary>
        <div className="mt-2">
          <table className="w-full">
            <caption className="sr-only">{title}</caption>
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
              {rows.map(({ cells, list }) => (
                <tr key={cells[0]}>
                  {cells.map((cell, column) => (
                    <td key={heads[column]}>
                      {/* Keyboards and screen readers follow the bars here. */}
                      {column === 0 && list ? <PageLink href={list} name={cell} className={UNDERLINED} /> : cell}
                    </td>
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

/** The start of an interval, as the axis and the table label it, in UTC. */
const labelOf = (at: Date, range: Range): string => (range === '24h' ? at.toISOString().slice(11, 16) : dayOf(at))

/** The start of a part, centred below it; the last part is still in progress. */
function AxisLabel({ part, traffic: { range, parts } }: { part: number; traffic: Traffic }) {
  const { at } = parts[part] ?? {}
  return (
    <span
      data-part={part}
      className="absolute -translate-x-1/2 whitespace-nowrap"
      style={{ left: `${(100 * (part + 0.5)) / parts.length}%` }}
    >
      {part === parts.length - 1 ? 'now' : at && labelOf(at, range)}
    </span>
  )
}

interface ReadingProps {
  heads: readonly string[]
  cells: readonly string[]
  isLate: boolean
  list: Route | undefined
}

/**
 * The values of one part, shown beside it while the pointer is over it, so that the legend and the sentence stay
 * visible. A click opens the list that the part counts.
 */
function Reading({ heads, cells, isLate, list }: ReadingProps) {
  return (
    <div className="group relative h-full flex-1 hover:bg-accent-wash/60">
      {list && <PageLink href={list} tabIndex={-1} className="absolute inset-0" />}
      <div
        className={`pointer-events-none absolute top-1 z-10 mx-1 hidden rounded-md border border-line bg-surface px-2.5 py-1.5 text-xs whitespace-nowrap text-ink shadow-card group-hover:block ${isLate ? 'right-full' : 'left-full'}`}
      >
        {cells.map((value, column) => (
          <div key={heads[column]} className="flex justify-between gap-4">
            <span className="text-faint">{heads[column]}</span>
            {value}
          </div>
        ))}
      </div>
    </div>
  )
}

/** Steps of an axis in seconds that people read easily: none of them is a fraction of a minute or an hour. */
const SECONDS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 18_000, 36_000]

/** Steps of a count: 1, 2, 5, 10, … */
const COUNTS = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat()

/** The three or four values of an axis that begins at 0 and reaches `most`. */
export function ticksOf(most: number, of: 'count' | 'seconds'): number[] {
  const steps = of === 'count' ? COUNTS : SECONDS
  const step = steps.find((one) => most <= 3 * one) ?? most / 2
  // Two steps at least, so that a single tall bar has a value to compare it with.
  return most <= 2 * step ? [0, step, 2 * step] : [0, step, 2 * step, 3 * step]
}

/** 0.5 → '0.5 s', 20 → '20 s', 120 → '2 min', 3600 → '1 h'. */
export function secondsLabel(value: number): string {
  if (value < 60) return `${Number(value.toFixed(1))} s`
  return value < 3_600 ? `${value / 60} min` : `${value / 3_600} h`
}
