import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { VARIABLE_NAMES } from '#lib/env.ts'

const read = (file: string) => readFileSync(file, 'utf8')
const lines = (file: string) =>
  read(file)
    .split('\n')
    .filter((line) => line && !line.startsWith('#'))

/** What goes to the builder. */
const [first, ...allowed] = lines('.dockerignore')

/** The stages of the Dockerfile by name, each its instructions. */
const stages = new Map(
  read('Dockerfile')
    .split(/^(?=FROM )/m)
    .flatMap((text) => {
      const name = /^FROM \S+ AS (\S+)/.exec(text)?.[1]
      return name ? [[name, text] as const] : []
    }),
)

describe('the images', () => {
  test('see nothing but what is named, and that is there', () => {
    expect(first).toBe('*')
    expect(allowed.every((line) => /^![\w.-]+$/.test(line) && existsSync(line.slice(1)))).toBe(true)
    expect(allowed.filter((line) => /\.env|\.data|\.git|node_modules|\.next/.test(line))).toEqual([])
  })

  test('copy only what the builder gets', () => {
    const copied = [...read('Dockerfile').matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, from]) =>
      from?.split(' '),
    )
    expect(copied.length).toBeGreaterThan(4)
    expect(copied.filter((from) => from !== '.' && !allowed.includes(`!${from}`))).toEqual([])
  })

  test.each([
    ['web', 'server.js'],
    ['relay', 'lib/cli/relay.ts'],
  ])('%s runs %s, not as root, and is looked after', (name, program) => {
    const stage = stages.get(name) ?? ''
    expect(stage).toMatch(new RegExp(`^USER node\\n[^]*^CMD \\["node", "${program}"\\]$`, 'm'))
    expect(stage).toMatch(/^HEALTHCHECK /m)
  })

  test('are made on the Node that the project asks for, the service by default', () => {
    const { engines } = JSON.parse(read('package.json')) as { engines: { node: string } }
    expect(stages.get('base')).toContain(`FROM node:${engines.node.replace('>=', '')}-slim`)
    expect([...stages.keys()].at(-1)).toBe('web')
  })
})

test('neither Dockerfile nor compose.yaml holds a secret', () => {
  const secret = /\b(\w*(?:SEEDS?|SECRET|PASSWORD|PRIVATE_KEY)) *[:=] *(.*)$/gm
  const set = ['Dockerfile', 'compose.yaml'].flatMap((file) => [...read(file).matchAll(secret)])
  expect(set.length).toBeGreaterThan(4)
  expect(set.filter(([, , value]) => value !== '""' && !/^\$\{\w+(:\?[^}]*)?\}$/.test(value ?? ''))).toEqual([])
})

test('compose.yaml sets no variable that nobody reads', () => {
  const names = [...read('compose.yaml').matchAll(/^ {6}([A-Z][A-Z_]+):/gm)].map(([, name]) => name ?? '')
  const known = new Set<string>([...VARIABLE_NAMES, 'POSTGRES_USER', 'POSTGRES_DB', 'POSTGRES_PASSWORD'])
  expect(names.length).toBeGreaterThan(8)
  expect(names.filter((name) => !known.has(name))).toEqual([])
})
