import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readMigrations } from '#lib/db/migration.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'migrations-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

/** A migration as drizzle-kit 1.0 writes it. */
function add(name: string, sql: string): void {
  mkdirSync(join(folder, name))
  writeFileSync(join(folder, name, 'migration.sql'), sql)
  writeFileSync(join(folder, name, 'snapshot.json'), '{}')
}

test('reads the migrations of drizzle-kit 1.0, oldest first', () => {
  add('20270102030405_later', 'SELECT 2;')
  add('20261129013910_initial', 'SELECT 1;--> statement-breakpoint\nSELECT 1;')
  const read = readMigrations(folder)
  expect(read.map(({ sql, folderMillis }) => [sql.length, new Date(folderMillis).toISOString()])).toEqual([
    [2, '2026-11-29T01:39:10.000Z'],
    [1, '2027-01-02T03:04:05.000Z'],
  ])
})

test('recognizes a released migration that drizzle-kit up has moved to a folder', () => {
  const [released] = readMigrations()
  add('20261129013910_initial', readFileSync('drizzle/migrations/0000_initial.sql', 'utf8'))
  expect(readMigrations(folder)[0]).toMatchObject({ hash: released?.hash, sql: released?.sql })
})

test('puts folders after the migrations that a journal lists', () => {
  cpSync('drizzle/migrations', folder, { recursive: true })
  add('20990101000000_later', 'SELECT 2;')
  expect(
    readMigrations(folder)
      .map(({ hash }) => hash)
      .slice(0, -1),
  ).toEqual(readMigrations().map(({ hash }) => hash))
})
