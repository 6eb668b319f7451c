import { spawnSync } from 'node:child_process'
import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { readVersion } from '#lib/config/version.ts'
import { makeTemplate } from './database-template.ts'
import { BuildInUse, withBuildLock } from './process/build-lock.ts'
import { printMessage } from './process/output.ts'

const SOURCES = [
  '{app,lib,drizzle}/**/*',
  'instrumentation.ts',
  'proxy.ts',
  'next.config.ts',
  'postcss.config.mjs',
  'package-lock.json',
  'package.json',
  'tsconfig.json',
]

/**
 * Builds the application unless the existing build is newer than every source file.
 * @throws BuildInUse
 */
export function buildIfStale(): void {
  if (isFresh()) return
  withBuildLock(() => {
    // Another process may have built it in the meantime.
    if (isFresh()) return
    packClient()
    run(nextProgram(), 'build')
  })
}

/** Next writes its configuration into each build: also the commit by which the build names itself (next.config.ts). */
const CONFIGURATION = '.next/required-server-files.json'

function isOfThisCommit(): boolean {
  if (!existsSync(CONFIGURATION)) return false
  const { config } = JSON.parse(readFileSync(CONFIGURATION, 'utf8')) as { config: { env: { COMMIT?: string } } }
  return config.env.COMMIT === (readVersion().commit ?? '')
}

function isFresh(): boolean {
  if (!isOfThisCommit()) return false
  const built = modifiedAt('.next/BUILD_ID')
  const sources = SOURCES.flatMap((pattern) => globSync(pattern, { exclude: ['lib/sdk/dist'] }))
  return sources.every((file) => modifiedAt(file) <= built)
}

/** Generates the types of the API client, and packs the package for frontends. */
export function packClient(): void {
  run('tests/api/generator/client.ts')
  run('lib/sdk/pack.ts')
}

function run(...args: string[]): void {
  const { status } = spawnSync(process.execPath, args, {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, NEXT_TELEMETRY_DISABLED: '1' },
  })
  if (status !== 0) process.exit(status ?? 1)
}

/** The file that `next` on the command line runs. */
export function nextProgram(): string {
  return fileURLToPath(import.meta.resolve('next/dist/bin/next'))
}

function modifiedAt(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0
}

if (import.meta.main) {
  try {
    buildIfStale()
  } catch (error) {
    if (!(error instanceof BuildInUse)) throw error
    printMessage(error.message)
    process.exit(1)
  }
  // With this template the embedded database starts from a copy, in less than a second.
  await makeTemplate()
}
