import { AsyncLocalStorage } from 'node:async_hooks'
import type { ServerResponse } from 'node:http'

// A build bundles this file twice, for startup and for the pages.
const shared = globalThis as { payrollPageResponse?: AsyncLocalStorage<ServerResponse> }
shared.payrollPageResponse ??= new AsyncLocalStorage()
const current = shared.payrollPageResponse

/** Lets the pages that `work` renders set the status of `response`. */
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
