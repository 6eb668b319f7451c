import { metrics } from '#lib/observability/metrics.ts'

/** Counts a request of the interface and how long it took. `route` is a closed set, since clients could make up paths. */
export function measureRequest(method: string, route: string, status: number, seconds: number): void {
  const { requests, requestSeconds } = metrics()
  requests.inc({ method, route, status: String(status) })
  requestSeconds.observe({ method, route }, seconds)
}
