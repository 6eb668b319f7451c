import { randomUUID } from 'node:crypto'

/** Request IDs that a caller may choose. Any other text could forge a log line or a header. */
const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/

/** Whether a text can be the ID of a request. */
export const isRequestId = (text: string): boolean => REQUEST_ID.test(text)

/** The ID of a request, for its response and its log lines: the caller's `X-Request-Id` if it is valid, else a new one. */
export function requestIdOf(header: string | null | undefined): string {
  return header && isRequestId(header) ? header : randomUUID()
}
