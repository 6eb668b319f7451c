import { connect, type Socket } from 'node:net'
import { load, percentile, residentMbOf } from './load.ts'
import { type PollingService, startPollingService } from './polling.ts'

/** One client that means harm: it goes on until `until` says so. */
interface Attack {
  name: string
  run(service: PollingService, until: () => boolean): Promise<unknown>
}

const SECONDS = 8
const JSON_TYPE = { 'Content-Type': 'application/json' }

const flood =
  (path: string, connections: number, method: string, headers: object, body?: string) =>
  ({ base }: PollingService, until: () => boolean) =>
    load(
      `${base}${path}`,
      { method, headers: { ...headers }, ...(body !== undefined && { body }) },
      { connections, seconds: 0, until },
    )

const ATTACKS: Attack[] = [
  { name: 'nothing', run: async () => undefined },
  { name: '20 at once: GET /docs', run: flood('/docs', 20, 'GET', {}) },
  {
    name: '300 at once: wrong passwords',
    run: (service, until) => {
      const form = {
        'Content-Type': 'application/x-www-form-urlencoded',
        Origin: service.base.replace('127.0.0.1', 'localhost'),
      }
      return flood('/sign-in/password', 300, 'POST', form, 'password=wrong')(service, until)
    },
  },
  {
    name: '4 at once: imports of 2,000 rows',
    run: (service, until) => {
      const body = JSON.stringify({ rows: Array.from({ length: 2_000 }, () => ({ name: 'n' })) })
      const headers = { ...JSON_TYPE, Authorization: `Bearer ${service.session}` }
      return flood('/api/contractors/bulk', 4, 'POST', headers, body)(service, until)
    },
  },
  {
    name: '4 at once: imports of 20,000 rows',
    run: (service, until) => {
      const body = JSON.stringify({ rows: Array.from({ length: 20_000 }, () => ({ name: 'n' })) })
      const headers = { ...JSON_TYPE, Authorization: `Bearer ${service.session}` }
      return flood('/api/contractors/bulk', 4, 'POST', headers, body)(service, until)
    },
  },
  {
    name: '100 at once: garbage for SEP-10',
    run: flood('/api/auth/sep10/verify', 100, 'POST', JSON_TYPE, JSON.stringify({ transaction: 'A'.repeat(8_000) })),
  },
  { name: '100 at once: challenges', run: flood(`/api/auth/sep10/challenge?account=G`, 100, 'GET', {}) },
  { name: '100 at once: sessions that are none', run: flood('/api/me', 100, 'GET', { Authorization: 'Bearer x.y.z' }) },
  { name: '2,000 half-sent bodies', run: halfSentBodies(2_000) },
]

function halfSentBodies(count: number) {
  return async ({ base }: PollingService, until: () => boolean): Promise<void> => {
    const { port, hostname } = new URL(base)
    const head = `POST /api/auth/sep10/verify HTTP/1.1\r\nHost: ${hostname}:${port}\r\nContent-Type: application/json\r\nContent-Length: 200000\r\n\r\n`
    const sockets: Socket[] = []
    while (!until()) {
      if (sockets.length < count) {
        const socket = connect(Number(port), hostname, () =>
          socket.write(`${head}{"transaction":"${'A'.repeat(30_000)}`),
        )
        socket.on('error', () => undefined)
        sockets.push(socket)
      }
      await new Promise((resolve) => setTimeout(resolve, sockets.length < count ? 1 : 50))
    }
    for (const socket of sockets) socket.destroy()
  }
}

/** What others wait for /me and /health while one client attacks: a table. */
export async function measureHostile(databaseUrl: string): Promise<void> {
  const service = await startPollingService(databaseUrl)
  try {
    const row = (cells: string[]) => console.log(cells.map((cell, index) => cell.padEnd(index ? 18 : 38)).join(''))
    row(['with this running', '/me p50, p99', '/health p50, p99', 'answers', 'memory'])
    for (const { name, run } of ATTACKS) {
      let isOver = false
      const attack = run(service, () => isOver)
      await new Promise((resolve) => setTimeout(resolve, 1_000))
      const [me, health] = await Promise.all([
        load(
          `${service.base}/api/me`,
          { headers: { Authorization: `Bearer ${service.session}` } },
          { connections: 2, seconds: SECONDS },
        ),
        load(`${service.base}/api/health`, {}, { connections: 2, seconds: SECONDS }),
      ])
      const memory = residentMbOf(service.pid)
      isOver = true
      await attack
      const times = ({ times: all }: typeof me) =>
        `${percentile(all, 0.5).toFixed(0)}, ${percentile(all, 0.99).toFixed(0)} ms`
      row([
        name,
        times(me),
        times(health),
        `${me.answers + health.answers}, ${me.others + health.others} bad`,
        `${memory.toFixed(0)} MB`,
      ])
    }
  } finally {
    await service.close()
  }
}
