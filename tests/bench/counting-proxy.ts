import { createServer } from 'node:http'

/** A proxy in front of an RPC that counts the calls made through it. */
export interface CountingProxy {
  url: string
  /** calls since the last reset */
  count(): number
  /** calls since the last reset, by method */
  methods(): Record<string, number>
  reset(): void
  close(): Promise<void>
}

export async function startCountingProxy(target: string): Promise<CountingProxy> {
  let calls: Record<string, number> = {}
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(Buffer.from(chunk))
    const { method = 'batch' } = JSON.parse(Buffer.concat(chunks).toString()) as { method?: string }
    calls[method] = (calls[method] ?? 0) + 1
    const headers = { 'Content-Type': 'application/json' }
    const answer = await fetch(target, { method: 'POST', headers, body: Buffer.concat(chunks) })
    response.writeHead(answer.status, headers).end(Buffer.from(await answer.arrayBuffer()))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (typeof address !== 'object' || !address) throw new Error('no address')
  return {
    url: `http://127.0.0.1:${address.port}`,
    count: () => Object.values(calls).reduce((sum, count) => sum + count, 0),
    methods: () => ({ ...calls }),
    reset: () => {
      calls = {}
    },
    close: () => {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}
