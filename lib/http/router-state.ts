/** The kinds of dynamic segment in the state of Next's client router. */
const KINDS = /^(c|d|oc|[cd]i\((\.|\.\.|\.\.\.|\.\.\)\(\.\.)\))$/

/**
 * Returns whether Next can read the Next-Router-State-Tree header, or it is absent. For any other value, Next responds with
 * a 500 and logs a stack trace.
 */
export function isRouterState(header: string | string[] | undefined): boolean {
  if (header === undefined) return true
  if (typeof header !== 'string' || header.length > 40_000) return false
  try {
    return isTree(JSON.parse(decodeURIComponent(header)))
  } catch {
    return false
  }
}

function isTree(value: unknown): boolean {
  if (!Array.isArray(value) || value.length < 2 || value.length > 6) return false
  const [segment, children, url, refresh, hint, extra] = value
  return (
    isSegment(segment) &&
    typeof children === 'object' &&
    children !== null &&
    !Array.isArray(children) &&
    Object.values(children).every(isTree) &&
    (url == null || isTuple(url, 2)) &&
    (refresh == null || ['refetch', 'inside-shared-layout', 'metadata-only'].includes(refresh)) &&
    (hint == null || typeof hint === 'number') &&
    (extra === undefined || typeof extra === 'string')
  )
}

function isSegment(value: unknown): boolean {
  if (typeof value === 'string') return true
  if (!Array.isArray(value) || value.length !== 4) return false
  const [, , kind, siblings] = value
  return (
    isTuple(value.slice(0, 2), 2) &&
    typeof kind === 'string' &&
    KINDS.test(kind) &&
    (siblings === null || isTuple(siblings))
  )
}

/** Whether `value` is an array of strings, of this length if one is given. */
function isTuple(value: unknown, length?: number): boolean {
  return (
    Array.isArray(value) &&
    (length === undefined || value.length === length) &&
    value.every((item) => typeof item === 'string')
  )
}
