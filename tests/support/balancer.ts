import { request } from 'node:http'
import { serveLocally } from './local-server.ts'

/** A load balancer in front of several instances. */
export interface Balancer {
  url: string
  /** the number of requests per instance */
  counts: number[]
  /** Sends each later request to a random one of these. */
  spread(instances: readonly string[]): void
  close(): Promise<void>
}

/** @param random a seeded source of integers from 0 to `below` - 1 */
export async function startBalancer(random: (below: number) => number): Promise<Balancer> {
  let instances: readonly string[] = []
  const server = await serveLocally((incoming, outgoing) => {
    if (instances.length === 0) return void outgoing.writeHead(502).end()
    const chosen = random(instances.length)
    const target = instances[chosen] ?? ''
    balancer.counts[chosen] = (balancer.counts[chosen] ?? 0) + 1
    const { hostname, port } = new URL(target)
    const { url: path, method, headers } = incoming
    const upstream = request({ hostname, port, path, method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    })
    upstream.on('error', () => outgoing.destroy())
    incoming.pipe(upstream)
  })
  const balancer: Balancer = {
    url: `http://localhost:${server.port}`,
    counts: [],
    spread: (to) => {
      instances = to
      balancer.counts = to.map(() => 0)
    },
    close: server.close,
  }
  return balancer
}
