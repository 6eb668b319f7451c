import { describeFailure, log } from '#lib/observability/log.ts'
import { sqlState } from './errors.ts'
import { takeLastStatements } from './last-statements.ts'

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
    limitTransactions(client)
    closeIfSilent(client)
    endTransactions(client)
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
 */
const limitsOf = (begin: string) => `SELECT set_config('lock_timeout', '5s', true),
  set_config('statement_timeout', '${/\bread only\b/i.test(begin) ? '5s' : '10s'}', true),
  set_config('idle_in_transaction_session_timeout', '15s', true)`

/** Sends the limits in one message with BEGIN, which saves each transaction a round trip. */
function limitTransactions(client: Client): void {
  client.query = new Proxy(client.query, {
    apply: (query, self, args: unknown[]) => {
      const [statement, ...others] = args
      return Reflect.apply(query, self, [isBegin(statement) ? withLimits(statement) : statement, ...others])
    },
  })
}

const withLimits = (statement: unknown) => rewrite(statement, (text) => `${text}; ${limitsOf(text)}`)

/** Sends the last statements of a transaction in one message with its COMMIT, and makes sure that it was committed. */
function endTransactions(client: Client): void {
  client.query = new Proxy(client.query, {
    apply: (query, self, args: unknown[]) => {
      const [statement, ...others] = args
      if (!isCommit(statement)) return Reflect.apply(query, self, args)
      const last = takeLastStatements()
      const ended: unknown = Reflect.apply(query, self, [rewrite(statement, (text) => `${last}${text}`), ...others])
      return ended instanceof Promise ? ended.then(assertCommitted) : ended
    },
  })
}

/** PostgreSQL answers the COMMIT of a transaction in which a statement has failed with ROLLBACK, which is no error. */
function assertCommitted(ended: unknown): unknown {
  const { command }: { command?: unknown } = Array.isArray(ended) ? ended.at(-1) : ended
  if (command !== 'COMMIT') throw new Error(`the database ended a transaction with ${command}`)
  return ended
}

const rewrite = (statement: unknown, change: (text: string) => string) =>
  typeof statement === 'object' && statement && 'text' in statement
    ? { ...statement, text: change(String(statement.text)) }
    : change(String(statement))

/**
 * Closes a connection whose statement gets no response. drizzle releases a connection after a transaction, but not if
 * its BEGIN fails, without a response or because the server shuts down. Such connections would leak: an outage during a
 * few requests would exhaust the pool permanently, and closing the pool would never finish.
 */
function closeIfSilent(client: Client): void {
  client.query = new Proxy(client.query, {
    apply: (query, self, args) => {
      const result: unknown = Reflect.apply(query, self, args)
      if (result instanceof Promise) {
        result.catch((error: unknown) => {
          if (sqlState(error) === undefined || isBegin(args[0])) client.release(true)
        })
      }
      return result
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
