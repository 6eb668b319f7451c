import type { Traffic, TrafficHour } from '#lib/operator/traffic.ts'
import { groupDigits } from '../figures.tsx'
import { Chart, HEIGHT, HOUR } from './chart.tsx'

/** How many transfers were accepted in each hour, and what became of them. */
export function TrafficChart({ traffic: { hours } }: { traffic: Traffic }) {
  const sum = (part: 'succeeded' | 'failed' | 'open') => hours.reduce((total, hour) => total + hour[part], 0)
  const most = Math.max(1, ...hours.map(allOf))
  const [succeeded, failed, open] = [sum('succeeded'), sum('failed'), sum('open')]
  const said = `${groupDigits(succeeded)} settled, ${groupDigits(failed)} failed, ${groupDigits(open)} in flight`
  return (
    <Chart
      title="Transfers per hour"
      summary={succeeded + failed + open === 0 ? 'None in the last 24 hours' : `${said} in the last 24 hours`}
      top={succeeded + failed + open === 0 ? '' : groupDigits(most)}
      hours={hours.map(({ at }) => at)}
      drawing={hours.map((hour, position) => (
        <Bar key={hour.at.getTime()} hour={hour} left={position * HOUR} most={most} />
      ))}
      heads={['From', 'Settled', 'Failed', 'In flight']}
      rows={hours.map((hour) => [
        hour.at.toISOString().slice(11, 16),
        String(hour.succeeded),
        String(hour.failed),
        String(hour.open),
      ])}
    />
  )
}

const allOf = ({ succeeded, failed, open }: TrafficHour) => succeeded + failed + open

function Bar({ hour, left, most }: { hour: TrafficHour; left: number; most: number }) {
  const high = (count: number) => (HEIGHT * count) / most
  const parts = [
    ['succeeded', hour.succeeded, 'var(--accent)'],
    ['open', hour.open, 'var(--busy-fill)'],
    ['failed', hour.failed, 'var(--bad-fill)'],
  ] as const
  let top = HEIGHT
  return (
    <g>
      {parts.map(([name, count, fill]) => {
        top -= high(count)
        return count > 0 && <rect key={name} x={left + 1.5} width={HOUR - 3} y={top} height={high(count)} fill={fill} />
      })}
    </g>
  )
}
