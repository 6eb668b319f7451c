import { describeFailure, log } from '#lib/observability/log.ts'
import { sqlState } from './errors.ts'

/** The part of a pool that both drivers share. */
interface Pool {
  connect: (...args: never[]) => unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'connect', listener: (client: Client) => void): unknown
}

/** The part of a checked-out connection that both drivers share. */
interface Client {
  query: (...args: never[]) => unknown
  release(isBroken?: Error | boolean): void
  on(event: 'error', listener: (error: Error) => void): unknown
}

/**
 * Makes a pool survive broken connections: they are replaced at the next use. A connection whose statement got no
 * response is closed: it may be in the middle of a transaction, in which it would run other requests' statements.
 */
export function guardPool(pool: Pool): void {
  // Without a listener, a broken connection would end the process.
  pool.on('error', logBrokenConnection)
  pool.on('connect', (client) => {
    client.on('error', logBrokenConnection)
    watchStatements(client)
  })
  pool.connect = new Proxy(pool.connect, {
    apply: (connect, self, args) => {
      const client: unknown = Reflect.apply(connect, self, args)
      return client instanceof Promise ? client.then(releaseOnce) : client
    },
  })
}

/**
 * What the service's statements and the driver's parsing depend on: a database, a role or a server may have other defaults. Poolers
 * that hand statements to changing sessions keep these settings for each client, and refuse them as options of a connection.
 */
export const SESSION = `SET DateStyle = 'ISO, MDY'; SET TimeZone = 'UTC'; SET standard_conforming_strings = on`

/** The option with which both drivers' pools prepare a new connection, before anything else uses it. Their types lack it. */
export const setSession = {
  verify: (client: { query(text: string, done: (error?: Error) => void): void }, done: (error?: Error) => void): void =>
    client.query(SESSION, (error) => done(error)),
}

/**
 * The server's own limits on a transaction: it aborts with an error, even behind a pooler. They are shorter than the
 * silence after which a connection is closed.
 * @param statement the time of a statement, such as `5s`
 */
export const limitsOf = (statement: string) => `SELECT set_config('lock_timeout', '5s', true),
  set_config('statement_timeout', '${statement}', true),
  set_config('idle_in_transaction_session_timeout', '15s', true)`

/** PostgreSQL answers the COMMIT of a transaction in which a statement has failed with ROLLBACK, which is no error. */
function assertCommitted(ended: unknown): unknown {
  const { command }: { command?: unknown } = Array.isArray(ended) ? ended.at(-1) : ended
  if (command !== 'COMMIT') throw new Error(`the database ended a transaction with ${command}`)
  return ended
}

/**
 * Closes a connection whose statement gets no response, and makes sure that a COMMIT has committed. drizzle releases a connection
 * after a transaction, but not if its BEGIN fails, without a response or because the server shuts down. Such connections would leak:
 * an outage during a few requests would exhaust the pool permanently, and closing the pool would never finish.
 */
function watchStatements(client: Client): void {
  client.query = new Proxy(client.query, {
    apply: (query, self, args) => {
      const result: unknown = Reflect.apply(query, self, args)
      if (!(result instanceof Promise)) return result
      result.catch((error: unknown) => {
        if (sqlState(error) === undefined || isBegin(args[0])) client.release(true)
      })
      return isCommit(args[0]) ? result.then(assertCommitted) : result
    },
  })
}

const isBegin = (statement: unknown) => /^begin\b/i.test(textOf(statement))
const isCommit = (statement: unknown) => /^commit\b/i.test(textOf(statement))

/** @param statement SQL, or a driver's query object */
function textOf(statement: unknown): string {
  const text = typeof statement === 'object' && statement && 'text' in statement ? statement.text : statement
  return typeof text === 'string' ? text : ''
}

/** Makes releasing a connection twice harmless: the pool throws the second time. */
function releaseOnce(client: Client): Client {
  const { release } = client
  let isReleased = false
  client.release = (error) => {
    if (!isReleased) release(error)
    isReleased = true
  }
  return client
}

function logBrokenConnection(error: Error): void {
  log('error', 'database connection', { failure: describeFailure(error) })
}
