import { count, time } from '#lib/observability/measure.ts'

/** Counts a request of the interface and how long it took. What is no part of it, such as the operator's forms, is not. */
export async function measureRequest(
  request: Request,
  context: unknown,
  { status, seconds }: { status: number; seconds: number },
): Promise<void> {
  if (!/^\/api(\/|$)/.test(new URL(request.url).pathname)) return
  const labels = { method: request.method, route: await routeName(request, context) }
  count('http-requests', { ...labels, status: String(status) })
  time('http-seconds', labels, seconds)
}

/** What every path is counted as that is none of ours. */
const ELSEWHERE = 'none'

/**
 * The route that a request has reached, with the name of each parameter in place of its value: what a measurement may
 * be labelled with, since nobody can make up more of them.
 * @param context what Next hands to a handler: the parameters by name, decoded
 */
export async function routeName(request: Request, context: unknown): Promise<string> {
  const params = Object.entries(await paramsOf(context))
  const segments = new URL(request.url).pathname.replace(/\/$/, '').split('/').slice(2)
  // Only the route for all other paths has a list for a parameter, or none at all.
  if (segments.length === 0 || params.some(([, value]) => typeof value !== 'string')) return ELSEWHERE
  const decoded = segments.map(decode)
  if (decoded.includes(undefined)) return ELSEWHERE
  const names = new Map<number, string>()
  for (const [name, value] of params) {
    // The first segment is never a parameter. A value may be equal to any other word of its route.
    const index = decoded.findIndex((segment, at) => at > 0 && !names.has(at) && segment === value)
    if (index < 0) return ELSEWHERE
    names.set(index, `{${name}}`)
  }
  return `/${decoded.map((segment, index) => names.get(index) ?? segment).join('/')}`
}

async function paramsOf(context: unknown): Promise<Record<string, unknown>> {
  if (typeof context !== 'object' || context === null || !('params' in context)) return {}
  const params: unknown = await context.params
  return typeof params === 'object' && params !== null ? { ...params } : {}
}

function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}
