import { readFileSync } from 'node:fs'
import { Agent, type OutgoingHttpHeaders, type RequestOptions, request } from 'node:http'

/** The responses to a load. */
export interface LoadReport {
  answers: number
  /** how many of them were not 200 */
  others: number
  /** milliseconds to each response, ascending */
  times: number[]
  seconds: number
}

/** A request. `client` is the address that a proxy claims to have seen, and `sessions` are used in turn. */
type Asked = RequestOptions & { body?: string | (() => string); client?: () => string; sessions?: readonly string[] }

/** Repeats the same request on this many connections, for this long. */
export async function load(
  url: string,
  options: Asked,
  { connections, seconds, until }: { connections: number; seconds: number; until?: () => boolean },
): Promise<LoadReport> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const began = performance.now()
  const times: number[] = []
  let others = 0
  const isOver = () => until?.() ?? performance.now() - began > seconds * 1000
  const ask = async () => {
    while (!isOver()) {
      const start = performance.now()
      const status = await askOnce(url, { ...options, agent }).catch(() => 0)
      times.push(performance.now() - start)
      if (status !== 200) others += 1
    }
  }
  await Promise.all(Array.from({ length: connections }, ask))
  agent.destroy()
  times.sort((one, other) => one - other)
  return { answers: times.length, others, times, seconds: (performance.now() - began) / 1000 }
}

let next = 0

/** One request; resolves to its status once the body has arrived. */
export function askOnce(url: string, { body, client, sessions, ...options }: Asked): Promise<number> {
  const seen = client && { 'X-Forwarded-For': client() }
  const bearer = sessions && { Authorization: `Bearer ${sessions[next++ % sessions.length]}` }
  return new Promise((resolve, reject) => {
    const asked = request(
      url,
      { ...options, headers: { ...(options.headers as OutgoingHttpHeaders), ...seen, ...bearer } },
      (response) => {
        response.resume()
        response.once('end', () => resolve(response.statusCode ?? 0))
        response.once('error', reject)
      },
    )
    asked.once('error', reject)
    asked.end(typeof body === 'function' ? body() : body)
  })
}

/** The time within which `share` of the responses arrived, in milliseconds. */
export function percentile(times: readonly number[], share: number): number {
  return times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? Number.NaN
}

/** Clock ticks of Linux: 100 a second. */
const TICK_MS = 10

/** User and system time of a process so far, in milliseconds, from /proc (Linux only). */
export function cpuMsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS
}

/** The resident memory of a process, in MB (Linux only). */
export function residentMbOf(pid: number): number {
  const [, kb = '0'] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kb) / 1024
}
