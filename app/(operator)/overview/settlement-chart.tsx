import { RANGES, type Traffic } from '#lib/dashboard/traffic.ts'
import { seconds } from '../figures.tsx'
import { Chart, HEIGHT, PART, secondsLabel, ticksOf } from './chart.tsx'

/** The median time from recording to settlement in each part, and a line at the 95th percentile of the whole range. */
export function SettlementChart({ traffic }: { traffic: Traffic }) {
  const { range, parts, medianSeconds, slowSeconds } = traffic
  const ticks = ticksOf(Math.max(slowSeconds ?? 0, ...parts.map((part) => part.medianSeconds ?? 0)), 'seconds')
  const most = ticks.at(-1) ?? 1
  const places = parts.flatMap(({ medianSeconds: median }, position) => {
    if (median === undefined) return []
    const isFirst = parts[position - 1]?.medianSeconds === undefined
    return { x: position * PART + PART / 2, y: HEIGHT * (1 - median / most), isFirst }
  })
  const summary =
    medianSeconds === undefined || slowSeconds === undefined
      ? `No transfer was paid in ${RANGES[range].words}`
      : `Half within ${seconds(medianSeconds)}, 95 of 100 within ${seconds(slowSeconds)}, in ${RANGES[range].words}`
  return (
    <Chart
      title="Settlement time"
      summary={summary}
      isEmpty={places.length === 0}
      traffic={traffic}
      ticks={ticks.map(secondsLabel)}
      line={
        slowSeconds === undefined ? undefined : { at: slowSeconds / most, label: `95 % within ${seconds(slowSeconds)}` }
      }
      legend={[{ word: 'Median, from recording to settlement', fill: 'var(--accent)' }]}
      drawing={
        <g fill="none" stroke="var(--accent)" strokeLinecap="round" strokeLinejoin="round">
          <path
            d={places.map(({ x, y, isFirst }) => `${isFirst ? 'M' : 'L'}${x} ${y}`).join('')}
            strokeWidth="2"
            vectorEffect="non-scaling-stroke"
          />
          {/* Points of zero length stay round in a stretched drawing. */}
          <path
            d={places.map(({ x, y }) => `M${x} ${y}h0`).join('')}
            strokeWidth="6"
            vectorEffect="non-scaling-stroke"
          />
        </g>
      }
      values={{ Median: (part) => (part.medianSeconds === undefined ? '–' : seconds(part.medianSeconds)) }}
    />
  )
}
