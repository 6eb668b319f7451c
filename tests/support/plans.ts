import { Client, type Pool, type PoolClient } from 'pg'

/** A step of a plan that reads a growing table. */
export interface Step {
  table: string
  /** undefined: it reads the table without one */
  index: string | undefined
  /** the rows that it has read, those that it removed included */
  rows: number
  statement: string
}

/** What a piece of work has read. */
export interface Reads {
  /** how many statements had a plan */
  plans: number
  steps: Step[]
}

/** The tables that grow with the number of payouts. */
const GROWING = new Set([
  'organisations',
  'organisation_hours',
  'organisation_costs',
  'identities',
  'contractors',
  'batches',
  'payouts',
  'transfers',
  'envelopes',
  'audit_log',
  'refusals',
  'relay_jobs',
  'relay_lines',
  'quotas',
  'used_challenges',
  'archive_events',
  'archive_event_accounts',
  'archive_payloads',
])

interface Node {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  /** of each loop, like the removed rows */
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  'Rows Removed by Index Recheck'?: number
  Plans?: Node[]
}

/**
 * Makes the server send each connection of a database the plans of its statements, nested ones included, with the rows that
 * each step has read. Ends the connections that were opened before.
 */
export async function explainAll(url: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const name = client.escapeIdentifier(client.database ?? '')
    for (const setting of [
      `session_preload_libraries = 'auto_explain'`,
      `auto_explain.log_min_duration = 0`,
      `auto_explain.log_analyze = on`,
      `auto_explain.log_timing = off`,
      `auto_explain.log_format = json`,
      `auto_explain.log_nested_statements = on`,
      `client_min_messages = log`,
      // The smaller tables of a small database are read whole even where an index would be used in a large one.
      `enable_seqscan = off`,
    ]) {
      await client.query(`ALTER DATABASE ${name} SET ${setting}`)
    }
    await client.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid()`)
  } finally {
    await client.end()
  }
}

/** Collects the plans that a pool's connections receive from now on. */
export function collectPlans(pool: Pool): { take(): Reads } {
  let plans = 0
  let steps: Step[] = []
  const watched = new WeakSet<PoolClient>()
  pool.on('acquire', (client) => {
    if (watched.has(client)) return
    watched.add(client)
    client.on('notice', ({ message = '' }) => {
      const [, json] = /^duration: .*?plan:\n(.*)$/s.exec(message) ?? []
      if (json === undefined) return
      const { 'Query Text': statement, Plan } = JSON.parse(json) as { 'Query Text': string; Plan: Node }
      plans += 1
      steps.push(...stepsOf(Plan, statement))
    })
  })
  return {
    take: () => {
      const taken = { plans, steps }
      plans = 0
      steps = []
      return taken
    },
  }
}

/** The steps that read growing tables. A step that is never executed reads nothing. */
function stepsOf(node: Node, statement: string): Step[] {
  const { 'Actual Rows': each, 'Actual Loops': loops, 'Relation Name': table = '', Plans = [] } = node
  const removed = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)
  const rows = Math.round((each + removed) * loops)
  const isScan = node['Node Type'].endsWith('Scan') && loops > 0
  const own = isScan && GROWING.has(table) ? [{ table, index: indexOf(node), rows, statement }] : []
  return [...own, ...Plans.flatMap((child) => stepsOf(child, statement))]
}

/** The index of a scan, which is that of a step below it if it reads a bitmap. */
const indexOf = ({ 'Node Type': type, 'Index Name': name, Plans = [] }: Node): string | undefined =>
  name ?? (type.startsWith('Bitmap') ? Plans.map(indexOf).find((index) => index !== undefined) : undefined)
