import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { makeTemplate } from '#lib/cli/database-template.ts'
import { insertRows, organisationRow } from '#lib/cli/seed/rows.ts'
import { openStore } from '#lib/db/connection.ts'
import { copyTemplate } from '#lib/db/template.ts'

let folder: string
let directory: string
let counter = 0
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'payroll-template-'))
  mkdirSync(join(folder, 'templates', 'of another version'), { recursive: true })
  await makeTemplate(join(folder, 'templates'))
})
afterAll(() => rmSync(folder, { recursive: true }))
beforeEach(() => {
  counter += 1
  directory = join(folder, `database ${counter}`)
})

const templates = () => join(folder, 'templates')

test('creates a template once and removes those of other versions', async () => {
  const [name = '', ...others] = readdirSync(templates())
  expect(others).toEqual([])
  const { ctimeMs } = statSync(join(templates(), name))
  await makeTemplate(templates())
  expect(readdirSync(templates())).toEqual([name])
  expect(statSync(join(templates(), name)).ctimeMs).toBe(ctimeMs)
})

test('creates a database as an independent, migrated and empty copy', async () => {
  for (const each of [directory, `${directory} of somebody else`]) {
    copyTemplate(each, templates())
    expect(existsSync(join(each, 'PG_VERSION'))).toBe(true)
    const store = openStore({ directory: each })
    const db = await store.database()
    expect(await db.query.organisations.findMany()).toEqual([])
    await insertRows(db, { organisations: [organisationRow()] })
    await store.close()
  }
})

test('does not overwrite an existing directory', () => {
  mkdirSync(directory)
  writeFileSync(join(directory, 'mine'), '')
  copyTemplate(directory, templates())
  expect(readdirSync(directory)).toEqual(['mine'])
})

test('restarts an interrupted copy', () => {
  mkdirSync(`${directory}.unfinished`)
  writeFileSync(join(`${directory}.unfinished`, 'half'), '')
  copyTemplate(directory, templates())
  expect(readdirSync(directory)).toContain('PG_VERSION')
  expect(readdirSync(directory)).not.toContain('half')
  expect(existsSync(`${directory}.unfinished`)).toBe(false)
})

test('creates nothing without a template', () => {
  copyTemplate(directory, join(folder, 'nowhere'))
  expect(existsSync(directory)).toBe(false)
})
