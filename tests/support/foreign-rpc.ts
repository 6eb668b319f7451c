import { createServer } from 'node:http'

/** An RPC that knows its network and nothing else, and may be switched to another. */
export interface ForeignRpc {
  url: string
  passphrase: string
  /** which methods were asked for, in order */
  asked: string[]
  close(): Promise<void>
}

export async function startForeignRpc(passphrase: string): Promise<ForeignRpc> {
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const { id, method } = JSON.parse(body) as { id: number; method: string }
    rpc.asked.push(method)
    const answer =
      method === 'getNetwork'
        ? { result: { passphrase: rpc.passphrase, protocolVersion: 23 } }
        : { error: { code: -32601, message: 'no such method' } }
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (typeof address !== 'object' || !address) throw new Error('not listening')
  const rpc: ForeignRpc = {
    url: `http://127.0.0.1:${address.port}`,
    passphrase,
    asked: [],
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return rpc
}
