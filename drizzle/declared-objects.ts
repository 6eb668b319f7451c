/** What drizzle-kit cannot describe: functions and triggers, as functions.sql declares them and migrations create them. */

const BREAKPOINT = '--> statement-breakpoint'

/** A function or trigger, and the statement that creates it. */
interface DatabaseObject {
  /** what tells it apart from others: a function's name and arguments, a trigger's name */
  key: string
  create: string
  drop: string
}

/** The statements of a migration, or of functions.sql. */
export function statementsIn(sql: string): string[] {
  const statements = sql.split(BREAKPOINT).map((statement) => statement.trim())
  return statements.filter((statement) => statement !== '')
}

function objectIn(statement: string): DatabaseObject | undefined {
  const [, func, args] = /^CREATE (?:OR REPLACE )?FUNCTION ("\w+")(\([^)]*\))/.exec(statement) ?? []
  if (func && args) return { key: `${func}${args}`, create: statement, drop: `DROP FUNCTION ${func}${args};` }
  const [, trigger, table] = /^CREATE (?:OR REPLACE )?TRIGGER ("\w+").*? ON ("\w+")/s.exec(statement) ?? []
  if (trigger && table) return { key: trigger, create: statement, drop: `DROP TRIGGER ${trigger} ON ${table};` }
  return undefined
}

const replacing = (create: string) => create.replace(/^CREATE (?:OR REPLACE )?/, 'CREATE OR REPLACE ')

/**
 * The statements that a database lacks to have the declared functions and triggers, after the migrations.
 * @param declared the text of functions.sql
 * @param migrations the texts of all migrations, oldest first
 */
export function missingStatements(declared: string, migrations: readonly string[]): string[] {
  const existing = new Map<string, DatabaseObject>()
  for (const statement of migrations.flatMap(statementsIn)) {
    const created = objectIn(statement)
    if (created) existing.set(created.key, created)
    for (const [key, { drop }] of existing) if (drop === statement) existing.delete(key)
  }
  const wanted = statementsIn(declared).flatMap((statement) => objectIn(statement) ?? [])
  const added = wanted.filter(({ key, create }) => {
    const before = existing.get(key)
    return before === undefined || replacing(before.create) !== replacing(create)
  })
  // A trigger goes before the function that it calls.
  const removed = [...existing.values()].filter(({ key }) => !wanted.some((one) => one.key === key)).reverse()
  return [...added.map(({ create }) => replacing(create)), ...removed.map(({ drop }) => drop)]
}

/** A statement by which an older version could fail on a migrated database. */
const REMOVING =
  /^(?:DROP (?:TABLE|INDEX|FUNCTION|TRIGGER|TYPE)|ALTER TABLE .*?(?: DROP (?:COLUMN|CONSTRAINT)| RENAME | SET NOT NULL| SET DATA TYPE| ALTER COLUMN .* TYPE | ADD COLUMN (?!.* DEFAULT ).* NOT NULL))/s
const CONTRACTION = /^INSERT INTO "contractions"/

/**
 * The statements of a migration that take away what older versions use, if it does not say so in "contractions". What the same
 * migration adds again under its name, such as a wider check, is not taken away.
 */
export function undeclaredContractions(migration: string): string[] {
  const statements = statementsIn(migration)
  if (statements.some((statement) => CONTRACTION.test(statement))) return []
  const addsAgain = (statement: string) => {
    const [, name] = /DROP (?:CONSTRAINT|INDEX) (?:IF EXISTS )?("\w+")/.exec(statement) ?? []
    return (
      name !== undefined &&
      statements.some((one) => new RegExp(`(?:ADD CONSTRAINT|INDEX) ${name} `).test(one) && one !== statement)
    )
  }
  return statements.filter((statement) => REMOVING.test(statement) && !addsAgain(statement))
}
