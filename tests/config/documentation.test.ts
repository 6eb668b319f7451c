import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { describe, expect, test } from 'vitest'
import { errorCodesPage } from '#lib/api/error-codes-page.ts'
import { configurationPage, environmentExample } from '#lib/config/documentation.ts'
import { readEnvironment, VARIABLE_NAMES } from '#lib/config/environment.ts'
import { SECTIONS } from '#lib/config/variables.ts'
import { containsSecretSeed } from '#lib/text/plain-text.ts'

test.each([
  ['docs/configuration.md', configurationPage],
  ['docs/error-codes.md', errorCodesPage],
  ['.env.example', environmentExample],
])('equals the output of `npm run docs`: %s', (file, text) => {
  expect(readFileSync(file, 'utf8')).toBe(text())
})

test('lists every variable in exactly one section', () => {
  const names = SECTIONS.flatMap(([, variables]) => Object.keys(variables))
  expect(names.toSorted()).toEqual(VARIABLE_NAMES.toSorted())
})

test('documents every variable of compose.yaml', () => {
  const names = [...readFileSync('compose.yaml', 'utf8').matchAll(/\$\{([A-Z][A-Z0-9_]*)/g)].map(([, name]) => name)
  for (const name of new Set(names)) expect(environmentExample()).toContain(`\n#${name}=`)
})

describe('.env.example', () => {
  const example = environmentExample()
  /** The environment of an operator who uncomments every line. */
  const values = parseEnv(example.replace(/^#(?=[A-Z][A-Z0-9_]*=)/gm, '')) as Record<string, string>

  test('sets nothing while every line is a comment', () => {
    expect(parseEnv(example)).toEqual({})
  })

  test('has example values that the service accepts', () => {
    expect(() => readEnvironment({ ...values, VERCEL: '' })).not.toThrow()
  })

  test('contains no usable key: secrets are empty and count as unset', () => {
    const secrets = Object.keys(values).filter((name) => /_SEEDS?$|SECRET|TOKEN$|PASSWORD|_KEY$/.test(name))
    expect(secrets.length).toBeGreaterThan(8)
    expect(secrets.filter((name) => values[name] && name !== 'CONFIDENTIAL_TOKEN')).toEqual([])
    expect(containsSecretSeed(example)).toBe(false)
  })
})
