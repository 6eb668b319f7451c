import { Counter, collectDefaultMetrics, Histogram, type Metric, Registry } from 'prom-client'

/** One value of a family, under its labels; `suffix` is for the parts of a histogram. */
export interface Sample {
  labels: Readonly<Record<string, string>>
  value: number
  suffix?: '_bucket' | '_sum' | '_count'
}

/** A metric that was measured elsewhere, with all its samples. */
export interface Family {
  name: string
  help: string
  type: 'counter' | 'gauge' | 'histogram'
  samples: readonly Sample[]
}

export const METRICS_TYPE = Registry.PROMETHEUS_CONTENT_TYPE

// A build may bundle the boot module and the routes apart, so what they share hangs on the process.
const shared = globalThis as { payrollMetrics?: ReturnType<typeof createMetrics> }

/**
 * The counters of this process. A count that must survive the process, or be the same for all instances, is read from
 * the database. Labels come from closed sets: each combination is kept for as long as the process lives.
 */
export function metrics() {
  shared.payrollMetrics ??= createMetrics()
  return shared.payrollMetrics
}

function createMetrics() {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  return {
    registry,
    requests: new Counter({
      name: 'payroll_http_requests_total',
      help: 'Requests to the interface, by method, route and status, of this process.',
      labelNames: ['method', 'route', 'status'],
      registers,
    }),
    requestSeconds: new Histogram({
      name: 'payroll_http_request_seconds',
      help: 'How long requests took, by method and route, of this process.',
      labelNames: ['method', 'route'],
      buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
      registers,
    }),
    rpcCalls: new Counter({
      name: 'payroll_rpc_calls_total',
      help: 'Calls to the Stellar RPC, by method, of this process.',
      labelNames: ['method'],
      registers,
    }),
    rpcErrors: new Counter({
      name: 'payroll_rpc_errors_total',
      help: 'Calls to the Stellar RPC without an answer, or with an error for one, of this process.',
      labelNames: ['method'],
      registers,
    }),
  }
}

/** These families and all that this process has counted, in Prometheus's text format. */
export async function exposeMetrics(families: readonly Family[]): Promise<string> {
  const registry = new Registry()
  for (const { samples, ...family } of families) {
    const values = samples.map(({ suffix = '', ...sample }) => ({ ...sample, metricName: family.name + suffix }))
    // The registry asks a metric for its name and its values and for nothing else; the library's own can only be counted up.
    registry.registerMetric({ ...family, get: async () => ({ ...family, values }) } as unknown as Metric)
  }
  return await Registry.merge([registry, metrics().registry]).metrics()
}
