import { globSync } from 'node:fs'

type Handler = (request: Request, context: { params: Promise<Record<string, string>> }) => Promise<Response>
type ApiMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS'

/** An API route: its path with `{name}` for each parameter, and the handlers that its file exports. */
interface ApiRoute {
  file: string
  path: string
  handlers: Record<ApiMethod, Handler>
}

/** Every route under app/api except the catch-all. */
export async function loadRoutes(): Promise<ApiRoute[]> {
  const files = globSync('app/api/**/route.ts').sort()
  const routes = files.filter((file) => !file.includes('[[...'))
  return await Promise.all(
    routes.map(async (file) => ({
      file,
      path: file.slice('app/api'.length, -'/route.ts'.length).replaceAll(/\[(\w+)\]/g, '{$1}'),
      handlers: (await import(new URL(`../../${file}`, import.meta.url).href)) as Record<ApiMethod, Handler>,
    })),
  )
}

/** The methods that a route allows according to its OPTIONS response. */
export async function methodsOf({ path, handlers }: ApiRoute): Promise<string[]> {
  const url = `http://localhost:3000/api${path.replaceAll(/[{}]/g, '')}`
  const answer = await handlers.OPTIONS(new Request(url, { method: 'OPTIONS' }), { params: Promise.resolve({}) })
  const allowed = answer.headers.get('allow')?.split(', ') ?? []
  return allowed.filter((method) => method !== 'OPTIONS').map((method) => method.toLowerCase())
}

/** Finds the route in `paths` that matches a path; the one with the fewest parameters wins. */
export function matchPath<Path extends { path: string }>(paths: readonly Path[], pathname: string) {
  const matches = paths.flatMap((candidate) => {
    const names = [...candidate.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
    const pattern = candidate.path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '([^/]+)')
    const match = new RegExp(`^${pattern}$`).exec(pathname)
    if (!match) return []
    const params = Object.fromEntries(names.map((name, index) => [name, decodeURIComponent(match[index + 1] ?? '')]))
    return [{ candidate, params, count: names.length }]
  })
  return matches.sort((one, other) => one.count - other.count)[0]
}

/** A `fetch` that calls the exported handlers, like the running service. */
export async function openApi(): Promise<(request: Request) => Promise<Response>> {
  const [routes, fallback, wellKnown] = await Promise.all([
    loadRoutes(),
    import('#app/api/[[...path]]/route.ts'),
    import('#app/.well-known/stellar.toml/route.ts'),
  ])
  return async (request) => {
    const { pathname } = new URL(request.url)
    if (pathname === '/.well-known/stellar.toml') return await wellKnown.GET(request, undefined)
    const match = matchPath(routes, pathname.replace(/^\/api/, ''))
    const handlers = match ? match.candidate.handlers : (fallback as unknown as ApiRoute['handlers'])
    return await handlers[request.method as ApiMethod](request, { params: Promise.resolve(match?.params ?? {}) })
  }
}
