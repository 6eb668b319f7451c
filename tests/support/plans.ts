import { Client, type Pool, type PoolClient } from 'pg'

/** A step of a plan that reads all of a growing table. */
export interface WholeScan {
  table: string
  step: string
  statement: string
}

/** The tables that grow with the number of payouts. */
const GROWING = new Set([
  'organisations',
  'identities',
  'contractors',
  'batches',
  'payouts',
  'transfers',
  'envelopes',
  'audit_log',
  'refusals',
  'batch_jobs',
  'batch_items',
  'quotas',
])

interface Node {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Plan Rows': number
  Plans?: Node[]
}

/** Makes the server send each connection of a database the plans of its statements, nested ones included. */
export async function explainAll(url: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const name = client.escapeIdentifier(client.database ?? '')
    for (const setting of [
      `session_preload_libraries = 'auto_explain'`,
      `auto_explain.log_min_duration = 0`,
      `auto_explain.log_format = json`,
      `auto_explain.log_nested_statements = on`,
      `client_min_messages = log`,
      // The smaller tables of a small database are read whole even where an index would be used in a large one.
      `enable_seqscan = off`,
    ]) {
      await client.query(`ALTER DATABASE ${name} SET ${setting}`)
    }
  } finally {
    await client.end()
  }
}

/** Collects the plans that a pool's connections receive from now on. */
export function collectPlans(pool: Pool): { take(): { plans: number; scans: WholeScan[]; indexes: string[] } } {
  let plans = 0
  let scans: WholeScan[] = []
  let indexes: string[] = []
  const watched = new WeakSet<PoolClient>()
  pool.on('acquire', (client) => {
    if (watched.has(client)) return
    watched.add(client)
    client.on('notice', ({ message = '' }) => {
      const [, json] = /^duration: .*?plan:\n(.*)$/s.exec(message) ?? []
      if (json === undefined) return
      const { 'Query Text': statement, Plan } = JSON.parse(json) as { 'Query Text': string; Plan: Node }
      plans += 1
      scans.push(...wholeScans(Plan, statement, false))
      indexes.push(...indexesOf(Plan))
    })
  })
  return {
    take: () => {
      const taken = { plans, scans, indexes }
      plans = 0
      scans = []
      indexes = []
      return taken
    },
  }
}

const indexesOf = ({ 'Index Name': name, Plans = [] }: Node): string[] => [
  ...(name === undefined ? [] : [name]),
  ...Plans.flatMap(indexesOf),
]

/** A step below a limit ends before it has read all the rows that it could. */
function wholeScans(node: Node, statement: string, isLimited: boolean): WholeScan[] {
  const { 'Node Type': type, 'Relation Name': table = '', 'Plan Rows': rows, Plans = [] } = node
  const isWhole = type === 'Seq Scan' || (!isLimited && rows > MOST_ROWS)
  const own = isWhole && GROWING.has(table) ? [{ table, step: `${type} of ${rows} rows`, statement }] : []
  return [...own, ...Plans.flatMap((child) => wholeScans(child, statement, isLimited || type === 'Limit'))]
}

/** A list counts up to 10,000 of its records. */
const MOST_ROWS = 10_001
