import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { describe, expect, test } from 'vitest'
import { readEnvironment, VARIABLE_NAMES } from '#lib/config/environment.ts'
import { containsSecretSeed } from '#lib/text/plain-text.ts'

const example = readFileSync('.env.example', 'utf8')
const readme = readFileSync('README.md', 'utf8')
const names = [...example.matchAll(/^#?([A-Z][A-Z0-9_]*)=/gm)].map(([, name]) => name ?? '')
/** What compose.yaml asks for that the service does not read. */
const asked = [...readFileSync('compose.yaml', 'utf8').matchAll(/\$\{([A-Z][A-Z0-9_]*)/g)].map(([, name]) => name ?? '')
const composed = [...new Set(asked)].filter((name) => !VARIABLE_NAMES.some((known) => known === name))
/** What somebody has who takes the # off every line. */
const uncommented = example.replace(/^#(?=[A-Z][A-Z0-9_]*=)/gm, '')

describe('.env.example', () => {
  test('has every variable once, those of compose.yaml among them, and no other', () => {
    expect(composed.toSorted()).toEqual(['POSTGRES_PASSWORD', 'WEB_PORT'])
    expect(names.toSorted()).toEqual([...VARIABLE_NAMES, ...composed].toSorted())
  })

  test('explains each: a comment stands above it, or above those that go with it', () => {
    const unexplained = example.split(/\n\n+/).filter((block) => /^#?[A-Z][A-Z0-9_]*=/.test(block))
    expect(unexplained).toEqual([])
  })

  test('sets nothing as it stands', () => {
    expect(parseEnv(example)).toEqual({})
  })

  test('has example values that the service takes', () => {
    const values = parseEnv(uncommented) as Record<string, string>
    expect(() => readEnvironment({ ...values, VERCEL: '' })).not.toThrow()
  })

  test('has no key that anybody could use: secrets are empty, and so are not set', () => {
    const values = parseEnv(uncommented)
    const secrets = names.filter((name) => /_SEEDS?$|SECRET|TOKEN$|PASSWORD|_KEY$/.test(name))
    expect(secrets.length).toBeGreaterThan(8)
    const filled = secrets.filter((name) => values[name] && name !== 'CONFIDENTIAL_TOKEN')
    expect(filled).toEqual([])
    expect(containsSecretSeed(example)).toBe(false)
  })
})

describe("the README's table of variables", () => {
  const rows = readme.split('\n').filter((line) => /^\| *`[A-Z][A-Z0-9_]*`/.test(line))
  const named = rows.flatMap((row) =>
    [...(row.split('|')[1] ?? '').matchAll(/`([A-Z][A-Z0-9_]*)`/g)].map(([, name]) => name),
  )

  test('names every variable once, and no other', () => {
    expect(named.toSorted()).toEqual(VARIABLE_NAMES.toSorted())
  })
})
