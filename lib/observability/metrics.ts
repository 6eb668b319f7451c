import { Counter, collectDefaultMetrics, Histogram, type Metric, Registry } from 'prom-client'
import { perProcess } from './per-process.ts'

/** A value of a family with its labels. `suffix` distinguishes the series of a histogram. */
interface Sample {
  labels: Readonly<Record<string, string>>
  value: number
  suffix?: '_bucket' | '_sum' | '_count'
}

/** A metric that is collected elsewhere, with all its samples. */
export interface Family {
  name: string
  help: string
  type: 'counter' | 'gauge' | 'histogram'
  samples: readonly Sample[]
}

/** The value of a family without labels, or its values for each value of one label. */
type Values = number | Readonly<Record<string, readonly (readonly [value: string, of: number])[]>>

const family =
  (type: Family['type']) =>
  (name: string, help: string, values: Values): Family => ({ name, help, type, samples: samplesOf(values) })

export const [gauge, counter] = [family('gauge'), family('counter')]

function samplesOf(values: Values): Sample[] {
  if (typeof values === 'number') return [{ labels: {}, value: values }]
  const [[label, rows] = ['', []]] = Object.entries(values)
  return rows.map(([of, value]) => ({ labels: { [label]: of }, value }))
}

export const METRICS_TYPE = Registry.PROMETHEUS_CONTENT_TYPE

/**
 * The counters of this process. Counts that must survive the process or be the same on all instances come from the
 * database. Label values are closed sets, because each combination stays in memory until the process ends.
 */
export const metrics = () => perProcess('metrics', createMetrics)

function createMetrics() {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  return {
    registry,
    requests: new Counter({
      name: 'payroll_http_requests_total',
      help: 'API requests of this process, by method, route and status.',
      labelNames: ['method', 'route', 'status'],
      registers,
    }),
    requestSeconds: new Histogram({
      name: 'payroll_http_request_seconds',
      help: 'Duration of API requests of this process, by method and route.',
      labelNames: ['method', 'route'],
      buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
      registers,
    }),
    rpcCalls: new Counter({
      name: 'payroll_rpc_calls_total',
      help: 'Stellar RPC calls of this process, by method.',
      labelNames: ['method'],
      registers,
    }),
    rpcErrors: new Counter({
      name: 'payroll_rpc_errors_total',
      help: 'Stellar RPC calls of this process that failed or returned an error, by method.',
      labelNames: ['method'],
      registers,
    }),
  }
}

/** These families and the counters of this process in Prometheus's text format. */
export async function exposeMetrics(families: readonly Family[]): Promise<string> {
  const registry = new Registry()
  for (const { samples, ...family } of families) {
    const values = samples.map(({ suffix = '', ...sample }) => ({ ...sample, metricName: family.name + suffix }))
    // The registry only reads the name and the values of a metric; the library's own classes can only count up.
    registry.registerMetric({ ...family, get: async () => ({ ...family, values }) } as unknown as Metric)
  }
  return await Registry.merge([registry, metrics().registry]).metrics()
}
