import { AsyncLocalStorage } from 'node:async_hooks'
import type { ServerResponse } from 'node:http'
import { perProcess } from '#lib/observability/per-process.ts'
import { Refusal } from '#lib/refusal/refusal.ts'

const current = perProcess('response', () => new AsyncLocalStorage<ServerResponse>())

/** Makes the response that `work` produces available to the code it runs. */
export function withResponse<Result>(response: ServerResponse, work: () => Result): Result {
  return current.run(response, work)
}

/** Sets the status of the page that is being rendered; false if it cannot be set, as on a host with its own server. */
export function setPageStatus(status: number): boolean {
  const response = current.getStore()
  if (!response || response.headersSent) return false
  response.statusCode = status
  return true
}

/**
 * Requires that the client of the current request, if there is one, still waits for its response.
 * @throws Refusal `unavailable`
 */
export function requireClient(): void {
  const response = current.getStore()
  if (response?.destroyed && !response.writableEnded) throw new Refusal('unavailable', 'the client has left')
}
