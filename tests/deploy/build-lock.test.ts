import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { CHILD_VARIABLES } from '../support/child-variables.ts'

const env = CHILD_VARIABLES as unknown as NodeJS.ProcessEnv
const lock = JSON.stringify(new URL('../../lib/cli/process/build-lock.ts', import.meta.url).href)
const HOLD = `import { holdBuild } from ${lock}; holdBuild(); console.log('held'); setInterval(() => {}, 1000)`
const BUILD = `import { withBuildLock } from ${lock}; withBuildLock(() => console.log('built'))`

test('builds only while no service of the folder runs, however one has ended', async () => {
  const cwd = mkdtempSync(join(tmpdir(), 'payroll-build-'))
  onTestFinished(() => rmSync(cwd, { recursive: true }))
  const build = () => spawnSync(process.execPath, ['--input-type=module', '-e', BUILD], { cwd, env, encoding: 'utf8' })
  expect(build().stdout).toBe('built\n')
  const services = [0, 1].map(() => spawn(process.execPath, ['--input-type=module', '-e', HOLD], { cwd, env }))
  for (const service of services) await once(service.stdout, 'data')
  for (const service of services) {
    const { stdout, stderr } = build()
    expect(stdout).toBe('')
    expect(stderr).toContain('A service of this folder is running')
    service.kill('SIGKILL')
    await once(service, 'exit')
  }
  expect(build().stdout).toBe('built\n')
})
