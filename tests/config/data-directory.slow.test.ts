import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
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

/** Another process that tries for the lock, says how it went, and stays. */
async function contend(): Promise<{ child: ChildProcess; said: string }> {
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
  return { child, said: String(chunk).trim() }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

test('of two processes one has the directory, until it is killed', async () => {
  const first = await contend()
  expect(first.said).toBe('held')
  const second = await contend()
  expect(second.said).toBe('DirectoryInUse')
  expect(() => lockDirectory(directory)).toThrowError(new DirectoryInUse(directory))
  await end(first.child)
  expect((await contend()).said).toBe('held')
})

test('another process has it once it is let go', async () => {
  const release = lockDirectory(directory)
  expect((await contend()).said).toBe('DirectoryInUse')
  release()
  expect((await contend()).said).toBe('held')
})

test('one process cannot lock it twice, and a refused try does not release it', async () => {
  const release = lockDirectory(directory)
  expect(() => lockDirectory(directory)).toThrowError(DirectoryInUse)
  expect((await contend()).said).toBe('DirectoryInUse')
  release()
  lockDirectory(directory)()
})

test('a directory that is not there yet is made, for its owner alone', () => {
  const deep = join(directory, 'a', 'b')
  lockDirectory(deep)()
  expect(statSync(deep).mode & 0o777).toBe(0o700)
})

test('a file or folder that is no lock is not reported as a lock of another process', () => {
  writeFileSync(join(directory, 'lock'), 'something else altogether '.repeat(50))
  expect(() => lockDirectory(directory)).toThrowError(/not a database/)
  rmSync(join(directory, 'lock'))
  mkdirSync(join(directory, 'lock'))
  expect(() => lockDirectory(directory)).toThrowError(/unable to open/)
})
