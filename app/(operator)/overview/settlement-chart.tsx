import { RANGES, type Traffic } from '#lib/dashboard/traffic.ts'
import { seconds } from '../figures.tsx'
import { Chart, HEIGHT, labelOf, PART } from './chart.tsx'

/** The median time from recording to settlement in each part. */
export function SettlementChart({ traffic: { range, parts, medianSeconds, slowSeconds } }: { traffic: Traffic }) {
  const most = Math.max(1, ...parts.map((part) => part.medianSeconds ?? 0)) * 1.15
  const places = parts.flatMap(({ medianSeconds: median }, position) =>
    median === undefined
      ? []
      : [
          {
            x: position * PART + PART / 2,
            y: HEIGHT * (1 - median / most),
            isFirst: parts[position - 1]?.medianSeconds === undefined,
          },
        ],
  )
  const summary =
    medianSeconds === undefined || slowSeconds === undefined
      ? `No transfer was paid in ${RANGES[range].words}`
      : `Half within ${seconds(medianSeconds)}, 95 of 100 within ${seconds(slowSeconds)}, in ${RANGES[range].words}`
  return (
    <Chart
      title="Settlement time"
      summary={summary}
      isEmpty={places.length === 0}
      range={range}
      top={seconds(most)}
      zero="0 s"
      starts={parts.map(({ at }) => at)}
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
      heads={['From (UTC)', 'Median']}
      rows={parts.map((part) => [
        labelOf(part.at, range),
        part.medianSeconds === undefined ? '–' : seconds(part.medianSeconds),
      ])}
    />
  )
}
