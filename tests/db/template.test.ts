import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { makeTemplate } from '#lib/cli/database-template.ts'
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

test('a template is made once, and templates of other versions are removed', async () => {
  const [name = '', ...others] = readdirSync(templates())
  expect(others).toEqual([])
  const { ctimeMs } = statSync(join(templates(), name))
  await makeTemplate(templates())
  expect(readdirSync(templates())).toEqual([name])
  expect(statSync(join(templates(), name)).ctimeMs).toBe(ctimeMs)
})

test('a database begins as its copy: migrated, with nothing in it, and apart from it', async () => {
  for (const each of [directory, `${directory} of somebody else`]) {
    copyTemplate(each, templates())
    expect(existsSync(join(each, 'PG_VERSION'))).toBe(true)
    const store = openStore({ directory: each })
    const db = await store.database()
    expect(await db.query.organisations.findMany()).toEqual([])
    await db.execute(sql`INSERT INTO organisations (name) VALUES ('one')`)
    await store.close()
  }
})

test('a directory that is there is left as it is', () => {
  mkdirSync(directory)
  writeFileSync(join(directory, 'mine'), '')
  copyTemplate(directory, templates())
  expect(readdirSync(directory)).toEqual(['mine'])
})

test('a copy that was not finished is begun anew', () => {
  mkdirSync(`${directory}.unfinished`)
  writeFileSync(join(`${directory}.unfinished`, 'half'), '')
  copyTemplate(directory, templates())
  expect(readdirSync(directory)).toContain('PG_VERSION')
  expect(readdirSync(directory)).not.toContain('half')
  expect(existsSync(`${directory}.unfinished`)).toBe(false)
})

test('without a template nothing is begun', () => {
  copyTemplate(directory, join(folder, 'nowhere'))
  expect(existsSync(directory)).toBe(false)
})
