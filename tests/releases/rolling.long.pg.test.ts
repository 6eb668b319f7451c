import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, symlinkSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { answers } from '#lib/cli/process/serve.ts'
import { migrateStore } from '#lib/db/connection.ts'
import { CHILD_VARIABLES } from '../support/child-variables.ts'
import { emptyDatabase } from '../support/database.ts'
import { freePort } from '../support/port.ts'
import { expectContinuation } from './continuation.ts'
import { RELEASES, readUnfinished, restoreRows, unpackLedger } from './unpacked.ts'

const run = promisify(execFile)
const previous = RELEASES.at(-1) ?? ''

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'payroll-rolling-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

/** The commit that added the data of a release; undefined in a clone without its history. */
async function commitOf(version: string): Promise<string | undefined> {
  const added = ['log', '-1', '--diff-filter=A', '--format=%H', '--', `tests/releases/${version}/unfinished.json`]
  const { stdout } = await run('git', added).catch(() => ({ stdout: '' }))
  return stdout.trim() || undefined
}

/** The sources of a commit with their packages. */
async function checkOut(commit: string): Promise<string> {
  const folder = join(directory, 'previous')
  await run('git', ['clone', '--quiet', '--shared', '--no-checkout', '.', folder])
  await run('git', ['checkout', '--quiet', '--detach', commit], { cwd: folder })
  const lock = 'package-lock.json'
  const sameLock = readFileSync(lock).equals(readFileSync(join(folder, lock)))
  if (sameLock) symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
  else await run('npm', ['ci', '--no-audit', '--no-fund'], { cwd: folder })
  return folder
}

test(`the code of ${previous} pays a transfer and a run on the database as this version migrates it`, async ({
  skip,
}) => {
  const commit = await commitOf(previous)
  if (commit === undefined) return skip(`this clone has no history of release ${previous}`)
  const folder = await checkOut(commit)
  expect(existsSync(join(folder, 'tests/releases/serve.ts'))).toBe(true)
  const database = await emptyDatabase()
  await restoreRows(previous, database.url)
  await migrateStore({ url: database.url })
  unpackLedger(previous, join(directory, 'data'))

  const [port, devnetPort] = [await freePort(), await freePort()]
  const base = `http://localhost:${port}`
  const env = {
    ...CHILD_VARIABLES,
    ...{ PORT: String(port), DEVNET_PORT: String(devnetPort), RELAY_PORT: '0', PUBLIC_URL: base },
    ...{ DATA_DIR: join(directory, 'data'), DEVNET_PROOFS: 'stand-in', DEVNET_CLOSE_MS: '200' },
    ...{ DATABASE_URL: database.url, SESSION_SECRET: 'a secret for tests, long enough for HS256' },
  } as unknown as NodeJS.ProcessEnv
  const old: ChildProcess = spawn(process.execPath, ['tests/releases/serve.ts'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
    env,
  })
  try {
    await until(old, () => answers(base))
    const deploymentUrl = `http://localhost:${devnetPort}/deployment.json`
    await expectContinuation({ base, deploymentUrl, unfinished: readUnfinished(previous) })
  } finally {
    if (old.exitCode === null) {
      old.kill('SIGKILL')
      await once(old, 'exit')
    }
    await database.drop()
  }
})

async function until(child: ChildProcess, isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) {
    if (child.exitCode !== null) throw new Error(`the service exited with code ${child.exitCode}`)
    await setTimeout(100)
  }
}
