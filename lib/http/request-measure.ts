import { count, time } from '#lib/observability/measure.ts'

/** Counts a request of the interface and how long it took. `route` is a closed set, since clients could make up paths. */
export function measureRequest(method: string, route: string, status: number, seconds: number): void {
  count('http-requests', { method, route, status: String(status) })
  time('http-seconds', { method, route }, seconds)
}
