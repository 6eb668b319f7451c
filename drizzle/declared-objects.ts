/** What drizzle-kit cannot describe: functions and triggers, as functions.sql declares them and migrations create them. */

const BREAKPOINT = '--> statement-breakpoint'

/** A function or trigger, and the statement that creates it. */
interface DatabaseObject {
  /** by which the database knows it: a function's name and types, a trigger's name and table */
  key: string
  create: string
  drop: string
  /** what CREATE OR REPLACE cannot change: the names and defaults of a function's arguments, and its result */
  signature: string
}

/** The statements of a migration, or of functions.sql, without the comments above them. */
export function statementsIn(sql: string): string[] {
  const statements = sql.split(BREAKPOINT).map((statement) => statement.replace(/^(?:\s*--.*\n|\s+)+/, '').trim())
  return statements.filter((statement) => statement !== '')
}

const FUNCTION = /^CREATE (?:OR REPLACE )?FUNCTION ("\w+")\(((?:[^()]|\([^()]*\))*)\)\s+RETURNS (\S+)/
const TRIGGER = /^CREATE (?:OR REPLACE )?TRIGGER ("\w+")[^;]*? ON ("\w+")/s

function objectIn(statement: string): DatabaseObject | undefined {
  const [, name, args, result] = FUNCTION.exec(statement) ?? []
  if (name !== undefined && args !== undefined) {
    const key = `FUNCTION ${name}(${typesOf(args).join(', ')})`
    return { key, create: statement, drop: `DROP FUNCTION IF EXISTS ${key.slice(9)};`, signature: `${args} ${result}` }
  }
  const [, trigger, table] = TRIGGER.exec(statement) ?? []
  if (trigger === undefined || table === undefined) return undefined
  const key = `TRIGGER ${trigger} ON ${table}`
  return { key, create: statement, drop: `DROP TRIGGER IF EXISTS ${key.slice(8)};`, signature: '' }
}

/** The types of a list of arguments, each of which is `"name" type [DEFAULT …]`. */
function typesOf(args: string): string[] {
  const parts = args.split(/,(?![^(]*\))/).map((part) => part.trim())
  return parts.filter((part) => part !== '').map((part) => part.replace(/^"\w+" /, '').replace(/ DEFAULT .*$/i, ''))
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
  const changed = wanted.flatMap(({ key, create, signature, drop }) => {
    const before = existing.get(key)
    if (before && replacing(before.create) === replacing(create)) return []
    return before && before.signature !== signature ? [drop, replacing(create)] : [replacing(create)]
  })
  // A trigger goes before the function that it calls.
  const removed = [...existing.values()].filter(({ key }) => !wanted.some((one) => one.key === key)).reverse()
  return [...changed, ...removed.map(({ drop }) => drop)]
}

/** Statements by which an older version could fail on a migrated database. */
const REMOVING = [
  /^DROP /,
  /^CREATE UNIQUE INDEX/,
  /^DELETE /,
  /^ALTER TABLE .* DROP /s,
  /^ALTER TABLE .* RENAME /s,
  /^ALTER TABLE .* ADD CONSTRAINT /s,
  /^ALTER TABLE .* SET NOT NULL/s,
  /^ALTER TABLE .* ALTER COLUMN .* (?:SET DATA )?TYPE /s,
  /^ALTER TABLE .* ADD COLUMN (?!.* DEFAULT \S+ NOT NULL)(?!.* GENERATED ).* NOT NULL/s,
]
const CONTRACTION = /^INSERT INTO "contractions" VALUES \((\d+)\);/

/**
 * The statements of a migration that take away what older versions use, or add a condition that they may break, if it does not say in
 * "contractions" from which number of migrations on a version knows. A table or column that it creates itself is no
 * matter.
 * @param number of the migration, from 1 for the first one
 */
export function undeclaredContractions(migration: string, number: number): string[] {
  const statements = statementsIn(migration)
  const created = statements.flatMap((statement) => /^CREATE TABLE ("\w+")/.exec(statement)?.[1] ?? [])
  const added = statements.flatMap((statement) => / ADD COLUMN ("\w+")/.exec(statement)?.[1] ?? [])
  const isNew = (statement: string) => {
    const isUnique = statement.startsWith('CREATE UNIQUE INDEX') || / ADD CONSTRAINT /.test(statement)
    const ofNewTable = created.includes(/ (?:ON|ALTER TABLE) ("\w+")/.exec(` ${statement}`)?.[1] ?? '')
    return ofNewTable || (isUnique && added.some((column) => statement.includes(column)))
  }
  const declared = statements.flatMap((statement) => CONTRACTION.exec(statement)?.[1] ?? []).map(Number)
  if (declared.some((least) => least > 1 && least <= number)) return []
  // A wider check replaces the one before. Whether it is wider is for the reader to see.
  const addsAgain = (statement: string) => {
    const [, name] = /(?:DROP|ADD) CONSTRAINT ("\w+")/.exec(statement) ?? []
    return name !== undefined && ['DROP', 'ADD'].every((verb) => migration.includes(`${verb} CONSTRAINT ${name}`))
  }
  return statements.filter((statement) => {
    const loosens = / DROP NOT NULL/.test(statement)
    return REMOVING.some((pattern) => pattern.test(statement)) && !loosens && !isNew(statement) && !addsAgain(statement)
  })
}
