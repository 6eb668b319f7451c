import { mkdirSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

/** A build does not clear this folder. */
const FOLDER = '.next/cache'

/** How long a process waits for the build of another one. */
const LONGEST_BUILD_MS = 600_000

/** A running service serves the files that a build would replace. */
export class BuildInUse extends Error {
  constructor() {
    super(
      'A service of this folder is running, and its sources are newer than its build. Stop it (Ctrl-C in its ' +
        'terminal) and run this command again. To see edits without a build, use npm run dev.',
    )
    this.name = 'BuildInUse'
  }
}

/** The lock of this process. The operating system releases the lock however the process ends. */
let held: DatabaseSync | undefined

/** Keeps other processes from replacing the build until this process ends. Several services may use one build. */
export function holdBuild(): void {
  held = openLock('serving', LONGEST_BUILD_MS)
  held.exec('BEGIN; SELECT count(*) FROM sqlite_master')
}

/**
 * Runs `build` while no other process builds, and no service runs.
 * @throws BuildInUse
 */
export function withBuildLock(build: () => void): void {
  const building = openLock('building', LONGEST_BUILD_MS)
  building.exec('BEGIN EXCLUSIVE')
  const serving = openLock('serving', 0)
  try {
    serving.exec('BEGIN EXCLUSIVE')
    build()
  } catch (error) {
    const isBusy = error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY
    throw isBusy ? new BuildInUse() : error
  } finally {
    serving.close()
    building.close()
  }
}

const SQLITE_BUSY = 5

function openLock(name: string, waitMs: number): DatabaseSync {
  mkdirSync(FOLDER, { recursive: true })
  return new DatabaseSync(`${FOLDER}/${name}.lock`, { timeout: waitMs })
}
