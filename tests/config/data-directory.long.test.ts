import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { DirectoryInUse, lockDirectory } from '#lib/config/data-directory.ts'

let directory: string
let children: ChildProcess[]
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'payroll-lock-'))
  children = []
})
afterEach(async () => {
  for (const child of children) await end(child)
  rmSync(directory, { recursive: true })
})

/** Another process that tries to lock the directory, reports the result, and keeps running. */
async function contend(): Promise<{ child: ChildProcess; output: string }> {
  const program = `
    import { lockDirectory } from ${JSON.stringify(pathToFileURL('lib/config/data-directory.ts').href)}
    try {
      lockDirectory(${JSON.stringify(directory)})
      console.log('held')
    } catch (error) {
      console.log(error.name)
    }
    setInterval(() => undefined, 1000)`
  const child = spawn('node_modules/.bin/node', ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  children.push(child)
  const [chunk] = await once(child.stdout, 'data')
  return { child, output: String(chunk).trim() }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

test('locks the directory for one of two processes until it is killed', async () => {
  const first = await contend()
  expect(first.output).toBe('held')
  const second = await contend()
  expect(second.output).toBe('DirectoryInUse')
  expect(() => lockDirectory(directory)).toThrowError(new DirectoryInUse(directory))
  await end(first.child)
  expect((await contend()).output).toBe('held')
})

test('keeps the lock of a caller that drops the function which releases it', async () => {
  lockDirectory(directory)
  // A collection closes a file that is no longer referenced.
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  await setImmediate()
  expect((await contend()).output).toBe('DirectoryInUse')
})

test('lets another process lock the directory after its release', async () => {
  const release = lockDirectory(directory)
  expect((await contend()).output).toBe('DirectoryInUse')
  release()
  expect((await contend()).output).toBe('held')
})

test('refuses a second lock by the same process and keeps the first', async () => {
  const release = lockDirectory(directory)
  expect(() => lockDirectory(directory)).toThrowError(DirectoryInUse)
  expect((await contend()).output).toBe('DirectoryInUse')
  release()
  lockDirectory(directory)()
})

test('creates a missing directory that only its owner can access', () => {
  const deep = join(directory, 'a', 'b')
  lockDirectory(deep)()
  expect(statSync(deep).mode & 0o777).toBe(0o700)
})

test('does not report an invalid lock file as a lock of another process', () => {
  writeFileSync(join(directory, 'lock'), 'something else altogether '.repeat(50))
  expect(() => lockDirectory(directory)).toThrowError(/not a database/)
  rmSync(join(directory, 'lock'))
  mkdirSync(join(directory, 'lock'))
  expect(() => lockDirectory(directory)).toThrowError(/unable to open/)
})
