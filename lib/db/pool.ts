import { describeFailure, log } from '#lib/observability/log.ts'
import { sqlState } from './errors.ts'

/** The part of a pool that is used; both drivers have it. */
interface Pool {
  connect: (...args: never[]) => unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'connect', listener: (client: Client) => void): unknown
}

/** The part of a lent connection that is used. */
interface Client {
  query: (...args: never[]) => unknown
  release(isBroken?: Error | boolean): void
  on(event: 'error', listener: (error: Error) => void): unknown
}

/**
 * Makes a pool outlive the connections in it. A connection that breaks, idle or in use, is replaced at the next use. One
 * whose statement got no answer is closed: it may be in the middle of a transaction, and back in the pool it would run
 * other requests' statements inside that.
 */
export function guardPool(pool: Pool): void {
  // Without listeners a broken connection would end the process.
  pool.on('error', logBrokenConnection)
  pool.on('connect', (client) => {
    client.on('error', logBrokenConnection)
    giveUpWhenSilent(client)
  })
  pool.connect = new Proxy(pool.connect, {
    apply: (connect, self, args) => {
      const lent: unknown = Reflect.apply(connect, self, args)
      return lent instanceof Promise ? lent.then(releaseOnce) : lent
    },
  })
}

/**
 * Gives up a connection whose statement gets no answer. drizzle gives a connection back after a transaction, but not
 * when its BEGIN fails, unanswered or because the server shuts down. Such connections would be lost: an outage
 * during a few requests would use up the pool for good, and closing the pool would wait for ever.
 */
function giveUpWhenSilent(client: Client): void {
  client.query = new Proxy(client.query, {
    apply: (query, self, args) => {
      const answer: unknown = Reflect.apply(query, self, args)
      if (answer instanceof Promise) {
        answer.catch((error: unknown) => {
          if (sqlState(error) === undefined || isBegin(args[0])) client.release(true)
        })
      }
      return answer
    },
  })
}

/** @param statement text, or a driver's query with its text */
function isBegin(statement: unknown): boolean {
  const text = typeof statement === 'object' && statement && 'text' in statement ? statement.text : statement
  return typeof text === 'string' && /^begin\b/i.test(text)
}

/** Lets a connection be released more than once: the pool throws at the second time. */
function releaseOnce(client: Client): Client {
  const { release } = client
  let isLent = true
  client.release = (error) => {
    if (isLent) release(error)
    isLent = false
  }
  return client
}

function logBrokenConnection(error: Error): void {
  log('error', 'database connection', { failure: describeFailure(error) })
}
