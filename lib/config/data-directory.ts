import { mkdirSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

/**
 * The path of `name` in a folder under DATA_DIR. Not `join` of node:path: a build that traces what may be read
 * (`.next/standalone`) takes that for every file of that name in the project, and would copy keys and ledgers into its output.
 */
export function dataPath(directory: string, name: string): string {
  return `${directory}/${name}`
}

/** Another process holds the directory. The message names it. */
export class DirectoryInUse extends Error {
  constructor(directory: string) {
    super(`${directory} is in use by another process`)
    this.name = 'DirectoryInUse'
  }
}

/** A database, or a folder under DATA_DIR, that another version of the service made. */
export class OtherVersion extends Error {
  constructor() {
    super(
      'this database belongs to another version of the service; until the first release there is no migration: remove DATA_DIR, or name an empty database',
    )
    this.name = 'OtherVersion'
  }
}

const SQLITE_BUSY = 5

/**
 * Makes `directory` if it must and holds it for this process alone until the returned function is called. The lock is
 * the operating system's on an open SQLite file, so it goes with the process however that ends; a pid written into a
 * file would outlive a SIGKILL and could name a stranger later.
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
  return () => lock.close()
}
