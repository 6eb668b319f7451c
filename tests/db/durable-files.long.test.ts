import fs from 'node:fs'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { openDurablePglite, POSTGRES_MAJOR } from '#lib/db/durable-files.ts'

const { fsyncSync } = fs
let folder: string
let fresh: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'durable-'))
  fresh = join(folder, 'fresh')
  const client = await PGlite.create(fresh)
  await client.exec('CREATE TABLE payments (id integer PRIMARY KEY)')
  await client.close()
})
afterEach(() => {
  fs.fsyncSync = fsyncSync
  syncBuiltinESMExports()
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/**
 * Copies the files in `directory` as of their last sync, which is the least that a power cut leaves. Syncing a folder
 * preserves the names in it; syncing a file preserves its content and its name, as on ext4.
 */
function recordSyncs(directory: string) {
  const contents = new Map<number, Buffer>()
  const names = new Map<string, number>()
  const list = () =>
    fs.readdirSync(directory, { recursive: true, withFileTypes: true }).map((entry) => {
      const path = join(entry.parentPath, entry.name)
      return { path, name: relative(directory, path), isFile: entry.isFile(), inode: fs.statSync(path).ino }
    })
  for (const { path, name, isFile, inode } of list()) {
    if (!isFile) continue
    contents.set(inode, fs.readFileSync(path))
    names.set(name, inode)
  }
  fs.fsyncSync = (file) => {
    const stat = fs.fstatSync(file)
    if (stat.isDirectory()) {
      const parent = list().find(({ inode }) => inode === stat.ino)?.name ?? ''
      const inside = (name: string) => dirname(name) === (parent || '.')
      for (const name of Array.from(names.keys()).filter(inside)) names.delete(name)
      for (const { name, isFile, inode } of list()) if (isFile && inside(name)) names.set(name, inode)
    } else {
      const synced = list().find(({ inode }) => inode === stat.ino)
      if (synced) {
        contents.set(stat.ino, fs.readFileSync(synced.path))
        names.set(synced.name, stat.ino)
      }
    }
    fsyncSync(file)
  }
  syncBuiltinESMExports()
  return {
    async restore(target: string) {
      for (const { name, isFile } of list()) if (!isFile) await mkdir(join(target, name), { recursive: true })
      for (const [name, inode] of names) fs.writeFileSync(join(target, name), contents.get(inode) ?? Buffer.alloc(0))
    },
  }
}

async function paymentsAfterPowerCut(open: (directory: string) => Promise<PGlite>): Promise<unknown[]> {
  const directory = await mkdtemp(join(folder, 'running-'))
  fs.cpSync(fresh, directory, { recursive: true })
  const disk = recordSyncs(directory)
  const client = await open(directory)
  for (let id = 1; id <= 10; id += 1) await client.query('INSERT INTO payments VALUES ($1)', [id])
  const restored = await mkdtemp(join(folder, 'restored-'))
  await disk.restore(restored)
  await client.close()
  const after = await PGlite.create(restored)
  const { rows } = await after.query<{ id: number }>('SELECT id FROM payments ORDER BY id')
  await after.close()
  return rows.map(({ id }) => id)
}

test('keeps every committed row through a power cut', async () => {
  expect(await paymentsAfterPowerCut(openDurablePglite)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
})

test('loses rows with PGlite alone, because it never syncs', async () => {
  expect(await paymentsAfterPowerCut((directory) => PGlite.create(directory))).toEqual([])
})

test('embeds the PostgreSQL whose folders this version opens', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'pglite-major-'))
  const client = await openDurablePglite(directory)
  await client.close()
  expect((await readFile(join(directory, 'PG_VERSION'), 'utf8')).trim()).toBe(POSTGRES_MAJOR)
  await rm(directory, { recursive: true, force: true })
})
