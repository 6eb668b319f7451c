import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { NextRequest } from 'next/server.js'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { resource } from '#lib/api/resource.ts'
import { ignoreBody, readJson } from '#lib/http/body.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { captureLog } from '../support/console.ts'

const LIMIT = 256 * 1024
const { GET, POST, PUT } = resource({
  GET: async (request) => ({ ignored: await ignoreBody(request) }),
  POST: async (request) => ({ read: await readJson(request, z.unknown()) }),
  PUT: async () => {
    throw new Refusal('bearer-missing', 'refused before the body is read')
  },
})
const HANDLERS: Record<string, typeof POST> = { GET, POST, PUT }

let server: Server
let port: number
let answers: Promise<Response>[]
let logged: string[]

/** Gives the handler the request that Next creates from a socket: a NextRequest over the IncomingMessage itself. */
beforeAll(async () => {
  server = createServer(async (incoming, outgoing) => {
    const headers = new Headers(incoming.headers as Record<string, string>)
    const method = incoming.method === 'GET' ? 'GET' : (incoming.method ?? '')
    // Next passes no body for a GET, even if one was sent.
    const init = { method, headers, ...(method !== 'GET' && { body: incoming, duplex: 'half' }) }
    const request = new NextRequest(
      'http://localhost/api/things',
      init as unknown as ConstructorParameters<typeof NextRequest>[1],
    )
    const answering = (HANDLERS[method] ?? POST)(request, {})
    answers.push(answering)
    const response = (await answering).clone()
    outgoing.writeHead(response.status, { 'Content-Type': 'application/json' }).end(await response.text())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})
beforeEach(() => {
  answers = []
  logged = captureLog()
})
afterEach(() => {
  vi.restoreAllMocks()
})

const send = (body: BodyInit) =>
  fetch(`http://127.0.0.1:${port}/`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body,
    duplex: 'half',
  } as RequestInit)

/** Sends raw bytes and returns the received bytes once the other side, or `until`, ends the connection. */
async function sendRaw(...parts: (string | Uint8Array)[]): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  let received = ''
  socket.on('data', (chunk) => {
    received += chunk.toString()
  })
  socket.on('error', () => undefined)
  for (const part of parts) socket.write(part)
  await new Promise<void>((resolve) => {
    socket.once('data', () => resolve())
    socket.once('close', () => resolve())
  })
  socket.destroy()
  return received
}

const chunked = (size: number) =>
  new ReadableStream({
    start: (controller) => {
      controller.enqueue(new TextEncoder().encode('"'))
      for (let left = size - 2; left > 0; left -= 50_000) {
        controller.enqueue(new Uint8Array(Math.min(left, 50_000)).fill(0x78))
      }
      controller.enqueue(new TextEncoder().encode('"'))
      controller.close()
    },
  })

test('reads a chunked body', async () => {
  const response = await send(chunked(LIMIT))
  expect(response.status).toBe(200)
  expect(((await response.json()) as { read: string }).read).toHaveLength(LIMIT - 2)
})

test.each([LIMIT + 1, 20 * LIMIT])('responds to %i bytes with 413, chunked or with Content-Length', async (size) => {
  for (const body of [chunked(size), `"${'x'.repeat(size - 2)}"`]) {
    const response = await send(body)
    expect([response.status, await response.json()]).toEqual([
      413,
      { error: 'the body is larger than 256 KiB', code: 'too-large' },
    ])
  }
})

test('responds 413 as soon as the limit is exceeded, before the body is complete', async () => {
  const head = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
  const received = await sendRaw(`${head}Content-Length: ${10 * LIMIT}\r\n\r\n`, new Uint8Array(LIMIT + 1).fill(0x20))
  expect(received).toMatch(/^HTTP\/1.1 413 /)
})

test.each([
  ['GET', LIMIT, 200],
  ['GET', LIMIT + 1, 413],
  ['PUT', LIMIT, 401],
  ['PUT', LIMIT + 1, 401],
])('responds to a %s with Content-Length %i without reading its body: %i', async (method, length, status) => {
  const received = await sendRaw(`${method} / HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n`)
  expect(received).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
})

test.each([1000, 10 * LIMIT])(
  'treats a client that hangs up before its Content-Length of %i as an incomplete body',
  async (length) => {
    const socket = connect(port, '127.0.0.1')
    socket.write(
      `POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n{"a":`,
    )
    await expect.poll(() => answers).toHaveLength(1)
    socket.destroy()
    const response = await answers[0]
    expect([response?.status, await response?.json()]).toEqual([
      400,
      { error: 'the body ended early', code: 'body-incomplete' },
    ])
    expect(logged.map((line) => JSON.parse(line).level)).toEqual(['info', 'info'])
  },
)
