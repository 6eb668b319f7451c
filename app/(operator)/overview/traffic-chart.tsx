import { RANGES, type Range, type Traffic, type TrafficPart } from '#lib/dashboard/traffic.ts'
import { groupDigits } from '#lib/text/figures.ts'
import { addressOf } from '../query.ts'
import { PageLink } from '../record-links.tsx'
import { Chart, HEIGHT, PART, ticksOf } from './chart.tsx'

const LEGEND = [
  { word: 'Succeeded', fill: 'var(--accent)' },
  { word: 'Open', fill: 'var(--busy-fill)' },
  { word: 'Failed', fill: 'var(--bad-fill)' },
] as const

/** The number of transfers recorded in each part of the range, by outcome. */
export function TrafficChart({ traffic }: { traffic: Traffic }) {
  const { range, parts } = traffic
  const sum = (part: 'succeeded' | 'failed' | 'open') => parts.reduce((total, one) => total + one[part], 0)
  const ticks = ticksOf(Math.max(...parts.map(allOf)), 'count')
  const most = ticks.at(-1) ?? 1
  const [succeeded, failed, open] = [sum('succeeded'), sum('failed'), sum('open')]
  const isEmpty = succeeded + failed + open === 0
  const counts = `${groupDigits(succeeded)} succeeded, ${groupDigits(failed)} failed, ${groupDigits(open)} open`
  const { words } = RANGES[range]
  return (
    <Chart
      title={range === '24h' ? 'Transfers per hour' : 'Transfers per day'}
      summary={isEmpty ? `No transfers in ${words}` : `${counts} in ${words}`}
      isEmpty={isEmpty}
      traffic={traffic}
      ticks={ticks.map(groupDigits)}
      legend={LEGEND}
      note={
        <>
          Transfers that the relay never sent are not counted: see{' '}
          <PageLink href="/jobs" name="Jobs" className="underline underline-offset-4 hover:text-ink" />.
        </>
      }
      drawing={parts.map((part, position) => (
        <Bar key={part.at.getTime()} part={part} left={position * PART} most={most} />
      ))}
      values={{
        Succeeded: (part) => groupDigits(part.succeeded),
        Open: (part) => groupDigits(part.open),
        Failed: (part) => groupDigits(part.failed),
      }}
      listOf={(part) => (allOf(part) === 0 ? undefined : listOf(part, range))}
    />
  )
}

/** The address of the transfers that were recorded in a part. */
function listOf({ at }: TrafficPart, range: Range) {
  const end = new Date(at.getTime() + RANGES[range].seconds * 1_000)
  return addressOf('/transfers', { from: at.toISOString(), to: end.toISOString() })
}

const allOf = ({ succeeded, failed, open }: TrafficPart) => succeeded + failed + open

function Bar({ part, left, most }: { part: TrafficPart; left: number; most: number }) {
  // In the order of the legend.
  const heights = stackHeights([part.succeeded, part.open, part.failed], HEIGHT / most)
  let top = HEIGHT
  return (
    <g>
      {LEGEND.map(({ word, fill }, position) => {
        const height = heights[position] ?? 0
        top -= height
        return height > 0 && <rect key={word} x={left + 1.5} width={PART - 3} y={top} height={height} fill={fill} />
      })}
    </g>
  )
}

/** The smallest visible height of a segment: 3 pixels. The drawing is 112 pixels and 100 units high. */
export const MIN_HEIGHT = 3

/**
 * The heights of a bar's segments. One failure among thousands must be visible: each non-zero segment gets MIN_HEIGHT
 * first, and the rest of the bar is divided in proportion.
 * @param unit height of a count of one
 */
export function stackHeights(counts: readonly number[], unit: number): number[] {
  const all = counts.reduce((sum, count) => sum + count, 0)
  const least = counts.filter((count) => count > 0).length * MIN_HEIGHT
  const rest = Math.max(0, all * unit - least)
  return counts.map((count) => (count === 0 ? 0 : MIN_HEIGHT + (rest * count) / all))
}
