import type { Traffic } from '#lib/operator/traffic.ts'
import { seconds } from '../figures.tsx'
import { Chart, HEIGHT, HOUR } from './chart.tsx'

/** How long it took from acceptance to settlement: the median of each hour. */
export function SettlementChart({ traffic: { hours, medianSeconds, slowSeconds } }: { traffic: Traffic }) {
  const most = Math.max(1, ...hours.map((hour) => hour.medianSeconds ?? 0)) * 1.15
  const places = hours.flatMap(({ medianSeconds: median }, position) =>
    median === undefined
      ? []
      : [
          {
            x: position * HOUR + HOUR / 2,
            y: HEIGHT * (1 - median / most),
            isFirst: hours[position - 1]?.medianSeconds === undefined,
          },
        ],
  )
  const summary =
    medianSeconds === undefined || slowSeconds === undefined
      ? 'Nothing settled in the last 24 hours'
      : `Half within ${seconds(medianSeconds)}, 95 of 100 within ${seconds(slowSeconds)}`
  return (
    <Chart
      title="Settlement time"
      summary={summary}
      top={places.length === 0 ? '' : seconds(most)}
      hours={hours.map(({ at }) => at)}
      drawing={
        <g fill="none" stroke="var(--accent)" strokeLinecap="round" strokeLinejoin="round">
          <path
            d={places.map(({ x, y, isFirst }) => `${isFirst ? 'M' : 'L'}${x} ${y}`).join('')}
            strokeWidth="2"
            vectorEffect="non-scaling-stroke"
          />
          {/* Points of no length: round whatever the drawing is stretched to. */}
          <path
            d={places.map(({ x, y }) => `M${x} ${y}h0`).join('')}
            strokeWidth="6"
            vectorEffect="non-scaling-stroke"
          />
        </g>
      }
      heads={['From', 'Median']}
      rows={hours.map((hour) => [
        hour.at.toISOString().slice(11, 16),
        hour.medianSeconds === undefined ? '–' : seconds(hour.medianSeconds),
      ])}
    />
  )
}
