import type { IncomingMessage, ServerResponse } from 'node:http'
import { readBody, serveLocally } from './local-server.ts'

/** A JSON-RPC call through the proxy. */
export interface Call {
  method: string
  params: Record<string, unknown>
  /** the number of earlier calls of this method */
  earlier: number
}

/**
 * The fault that the proxy injects into a call. `pass` forwards the call. `answer` returns this result without
 * forwarding, `rewrite` forwards and changes the result, `status` is an HTTP error without forwarding. `hang` never
 * responds (and forwards first if `delivered`), `drop` closes the connection (after forwarding if `delivered`). `cut`
 * forwards and sends the first half of the response, `twice` forwards twice.
 */
export type Fault =
  | 'pass'
  | { answer: Record<string, unknown> }
  | { rewrite: (result: Record<string, unknown>) => Record<string, unknown> }
  | { error: { code: number; message: string } }
  | { status: number }
  | { cut: true }
  | { twice: true }
  | { hang: true; delivered: boolean }
  | { drop: true; delivered: boolean }

export interface FaultProxy {
  url: string
  /** every call so far, by method */
  calls: Map<string, number>
  /** Sets the rule for later calls; null passes everything. A rule may wait before it returns. */
  rule(decide: ((call: Call) => Fault | Promise<Fault>) | null): void
  close(): Promise<void>
}

/** A proxy in front of a real RPC that falsifies responses, hangs and drops connections. */
export async function startFaultProxy(target: string): Promise<FaultProxy> {
  const calls = new Map<string, number>()
  let decide: ((call: Call) => Fault | Promise<Fault>) | null = null

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = String(await readBody(request))
    const { id, method, params } = JSON.parse(body) as { id: unknown; method: string; params: Record<string, unknown> }
    const earlier = calls.get(method) ?? 0
    calls.set(method, earlier + 1)
    const fault = decide ? await decide({ method, params: params ?? {}, earlier }) : 'pass'
    const forward = async () => {
      const answer = await fetch(target, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body })
      return await answer.text()
    }
    const reply = (text: string) => response.setHeader('Content-Type', 'application/json').end(text)
    if (fault === 'pass') reply(await forward())
    else if ('answer' in fault) reply(JSON.stringify({ jsonrpc: '2.0', id, result: fault.answer }))
    else if ('error' in fault) reply(JSON.stringify({ jsonrpc: '2.0', id, error: fault.error }))
    else if ('rewrite' in fault) {
      const answer = JSON.parse(await forward()) as { result: Record<string, unknown> }
      reply(JSON.stringify({ ...answer, result: fault.rewrite(answer.result) }))
    } else if ('status' in fault) response.writeHead(fault.status).end('a fault')
    else if ('cut' in fault) {
      const answer = await forward()
      reply(answer.slice(0, answer.length / 2))
    } else if ('twice' in fault) {
      await forward()
      reply(await forward())
    } else {
      if (fault.delivered) await forward()
      if ('drop' in fault) response.destroy()
    }
  }

  const server = await serveLocally((request, response) => {
    handle(request, response).catch(() => response.destroy())
  })
  return {
    url: server.url,
    calls,
    rule: (next) => {
      decide = next
    },
    close: server.close,
  }
}
