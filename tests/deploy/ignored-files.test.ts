import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'

const read = (file: string) => readFileSync(file, 'utf8')
const pages = ['README.md', 'docs/walkthrough.md', 'docs/deploy.md'].map(read).join('\n')
const blocks = [...pages.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, code]) => code ?? '').join('\n')

/** Every file that a shell line of the documentation names in the project's folder. */
const files = [...blocks.matchAll(/(?:>>?|--(?:env|keys|deployment)) +([\w.][\w./-]*)/g)].map(([, file]) => file ?? '')

/** More files with secrets: temporary ones before a rename, defaults of commands, and names that people choose. */
const likewise = ['relay.env', '.env.new', '.env.testnet', 'service.env', 'deployment.testnet.json', '.data/keys.json']

/** Those of `names` that git leaves out by the rules of `file`, in a folder of their own. */
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
  test('leaves out every file with keys or data that the documentation makes', () => {
    expect(files).toEqual(expect.arrayContaining(['.env', 'deployment.json', 'transfer.xdr']))
    const names = [...new Set([...files, ...likewise, 'pay.ts'])]
    expect(ignoredBy(file, names)).toEqual(names)
  })

  test('leaves out nothing that is needed', () => {
    const needed = ['app/layout.tsx', 'lib/setup/env-file.ts', 'drizzle/migrations/meta/_journal.json']
    expect(ignoredBy(file, [...needed, 'package.json', 'package-lock.json', 'vercel.json'])).toEqual([])
  })
})

test.skipIf(!hasGit)('.env.example belongs to the project', () => {
  expect(ignoredBy('.gitignore', ['.env.example'])).toEqual([])
})

test('Vercel gets what an image is built of, and its own settings', () => {
  const named = (file: string) => read(file).match(/^!.+$/gm)?.toSorted()
  expect(named('.vercelignore')).toEqual([...(named('.dockerignore') ?? []), '!vercel.json'].toSorted())
})
