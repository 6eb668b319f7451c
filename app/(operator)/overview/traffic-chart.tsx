import { RANGES, type Traffic, type TrafficPart } from '#lib/operator/traffic.ts'
import { groupDigits } from '../figures.tsx'
import { Chart, HEIGHT, labelOf, PART } from './chart.tsx'

const LEGEND = [
  { word: 'Succeeded', fill: 'var(--accent)' },
  { word: 'Open', fill: 'var(--busy-fill)' },
  { word: 'Failed', fill: 'var(--bad-fill)' },
] as const

/** How many transfers were accepted in each part, and what became of them. */
export function TrafficChart({ traffic: { range, parts } }: { traffic: Traffic }) {
  const sum = (part: 'succeeded' | 'failed' | 'open') => parts.reduce((total, one) => total + one[part], 0)
  const most = Math.max(1, ...parts.map(allOf))
  const [succeeded, failed, open] = [sum('succeeded'), sum('failed'), sum('open')]
  const isEmpty = succeeded + failed + open === 0
  const said = `${groupDigits(succeeded)} succeeded, ${groupDigits(failed)} failed, ${groupDigits(open)} open`
  const { words } = RANGES[range]
  return (
    <Chart
      title={range === '24h' ? 'Transfers per hour' : 'Transfers per day'}
      summary={isEmpty ? `No transfers in ${words}` : `${said} in ${words}`}
      isEmpty={isEmpty}
      range={range}
      top={groupDigits(most)}
      zero="0"
      starts={parts.map(({ at }) => at)}
      legend={LEGEND}
      drawing={parts.map((part, position) => (
        <Bar key={part.at.getTime()} part={part} left={position * PART} most={most} />
      ))}
      heads={['From (UTC)', 'Succeeded', 'Open', 'Failed']}
      rows={parts.map((part) => [
        labelOf(part.at, range),
        groupDigits(part.succeeded),
        groupDigits(part.open),
        groupDigits(part.failed),
      ])}
    />
  )
}

const allOf = ({ succeeded, failed, open }: TrafficPart) => succeeded + failed + open

function Bar({ part, left, most }: { part: TrafficPart; left: number; most: number }) {
  const high = (count: number) => (HEIGHT * count) / most
  const [succeeded, open, failed] = LEGEND
  const stack = [
    [part.succeeded, succeeded],
    [part.open, open],
    [part.failed, failed],
  ] as const
  let top = HEIGHT
  return (
    <g>
      {stack.map(([count, { word, fill }]) => {
        top -= high(count)
        return count > 0 && <rect key={word} x={left + 1.5} width={PART - 3} y={top} height={high(count)} fill={fill} />
      })}
    </g>
  )
}
