import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { z } from 'zod'

const FOLDER = 'drizzle/migrations'
const FILE = 'drizzle/released.json'

/** A migration that no later version may change: digests (SHA-256, hex) of its files, and its time in the journal. */
const frozenShape = z.strictObject({ when: z.number(), sql: z.string(), snapshot: z.string() })
const releasedShape = z.record(z.string(), z.record(z.string(), frozenShape))

/** The migrations of each release: version → name → what was released. */
export type Released = z.output<typeof releasedShape>

const journalShape = z.object({ entries: z.array(z.object({ tag: z.string(), when: z.number() })) })

const digest = (path: string) =>
  createHash('sha256')
    .update(readFileSync(`${FOLDER}/${path}`))
    .digest('hex')

export const readReleased = (): Released => releasedShape.parse(JSON.parse(readFileSync(FILE, 'utf8')))

/** The migrations as they are now, by name, oldest first. */
export function digestMigrations(): Released[string] {
  const { entries } = journalShape.parse(JSON.parse(readFileSync(`${FOLDER}/meta/_journal.json`, 'utf8')))
  return Object.fromEntries(
    entries.map(({ tag, when }) => {
      const snapshot = digest(`meta/${tag.slice(0, 4)}_snapshot.json`)
      return [tag, { when, sql: digest(`${tag}.sql`), snapshot }]
    }),
  )
}
