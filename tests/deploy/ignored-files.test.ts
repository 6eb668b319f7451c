import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'

const read = (file: string) => readFileSync(file, 'utf8')
const pages = ['README.md', 'docs/walkthrough.md', 'docs/deploy.md'].map(read).join('\n')
const blocks = [...pages.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, code]) => code ?? '').join('\n')

/** The files in the project's folder that the documented shell commands read or write. */
const files = [...blocks.matchAll(/(?:>>?|--(?:env|keys|deployment)) +([\w.][\w./-]*)/g)].map(([, file]) => file ?? '')

/** The keys in the data folders of those commands. */
const keys = [...blocks.matchAll(/DATA_DIR=([\w.-]+)/g)].map(([, directory]) => `${directory}/keys.json`)

/** More files with secrets: temporary files before a rename, defaults of commands, and likely names. */
const otherSecrets = [
  'relay.env',
  '.env.new',
  '.env.testnet',
  'service.env',
  'deployment.testnet.json',
  '.data/keys.json',
]

/** The `names` that git ignores if `file` contains its rules, checked in an empty repository. */
function ignoredBy(file: string, names: readonly string[]): string[] {
  const directory = mkdtempSync(join(tmpdir(), 'payroll-ignored-'))
  try {
    const git = (args: string[], input = '') =>
      spawnSync('git', ['-C', directory, '-c', 'core.excludesFile=/dev/null', ...args], { input, encoding: 'utf8' })
    expect(git(['init', '--quiet']).status).toBe(0)
    copyFileSync(file, join(directory, '.gitignore'))
    return git(['check-ignore', '--stdin'], names.join('\n')).stdout.split('\n').filter(Boolean)
  } finally {
    rmSync(directory, { recursive: true })
  }
}

const hasGit = spawnSync('git', ['--version']).status === 0

describe.skipIf(!hasGit).each(['.gitignore', '.vercelignore'])('%s', (file) => {
  test('excludes every file with keys or data that the documented commands write', () => {
    expect(files).toEqual(expect.arrayContaining(['.env', 'deployment.json', 'transfer.xdr']))
    expect(keys).toContain('.data-short/keys.json')
    const names = [...new Set([...files, ...keys, ...otherSecrets])]
    expect(ignoredBy(file, names)).toEqual(names)
  })

  test('excludes no file that a build needs', () => {
    const needed = ['app/layout.tsx', 'lib/setup/env-file.ts', 'drizzle/migrations/meta/_journal.json']
    expect(ignoredBy(file, [...needed, 'package.json', 'package-lock.json', 'vercel.json'])).toEqual([])
  })
})

test.skipIf(!hasGit)('does not make git ignore .env.example', () => {
  expect(ignoredBy('.gitignore', ['.env.example'])).toEqual([])
})

test.skipIf(!hasGit)('gives Vercel the files that an image is built from, and its settings', () => {
  const namesIn = (file: string) => Array.from(read(file).matchAll(/^!(.+)$/gm), ([, name = '']) => name)
  const needed = [...namesIn('.dockerignore'), 'vercel.json']
  expect(ignoredBy('.vercelignore', needed)).toEqual([])
  const isFolderOfNeeded = (name: string) => needed.some((file) => file.startsWith(`${name}/`))
  expect(namesIn('.vercelignore').filter((name) => !needed.includes(name) && !isFolderOfNeeded(name))).toEqual([])
  const others = ['tests/vitest.config.ts', 'tests/api/journeys.test.ts', 'tests/api/generator/node_modules/x.js']
  expect(ignoredBy('.vercelignore', others)).toEqual(others)
})
