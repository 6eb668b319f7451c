import { mkdirSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

/**
 * The path of `name` in a folder under DATA_DIR. It does not use `join` of node:path: a standalone build would trace it
 * to every file of this name in the project, and copy keys and ledgers into its output.
 */
export function dataPath(directory: string, name: string): string {
  return `${directory}/${name}`
}

/** The DATA_DIR of `npm run dev`, unless it is set: npm start has another one, so that both keep their records. */
export const DEVELOPMENT_DIRECTORY = '.data/dev'

/** Another process has locked the directory. */
export class DirectoryInUse extends Error {
  constructor(directory: string) {
    super(`${directory} is in use by another process. Stop that service, or set DATA_DIR to another folder.`)
    this.name = 'DirectoryInUse'
  }
}

/** Another version of the service wrote this folder under DATA_DIR, and this one cannot use it. */
export class OtherVersion extends Error {
  constructor(message: string) {
    super(`${message}. See docs/releases.md`)
    this.name = 'OtherVersion'
  }
}

const SQLITE_BUSY = 5

/** Keeps the lock files referenced: when Node garbage-collects one, it closes the file and releases the lock. */
const held = new Set<DatabaseSync>()

/**
 * Creates `directory` if necessary and locks it for this process until the returned function is called. The operating
 * system holds the lock on an open SQLite file and releases it however the process ends. A pid file would survive a
 * SIGKILL and could later match an unrelated process.
 * @throws DirectoryInUse
 */
export function lockDirectory(directory: string): () => void {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const lock = new DatabaseSync(dataPath(directory, 'lock'))
  try {
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
  } catch (error) {
    lock.close()
    const busy = error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY
    throw busy ? new DirectoryInUse(directory) : error
  }
  held.add(lock)
  return () => {
    held.delete(lock)
    lock.close()
  }
}
