import { randomUUID } from 'node:crypto'

/** What a caller may name a request by: anything else could break a line of a log or the header itself. */
const GIVEN = /^[A-Za-z0-9._-]{1,64}$/

/** The id of a request, for the answer and for every log line: the caller's own if it is fit, else a new one. */
export function requestIdOf(request: Request): string {
  const given = request.headers.get('x-request-id')
  return given !== null && GIVEN.test(given) ? given : randomUUID()
}
