import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, dirname, extname, join } from 'node:path'
import { describe, expect, test } from 'vitest'

const files = globSync(['{app,lib,drizzle}/**/*.{ts,tsx}', 'instrumentation.ts']).sort()
const sources = new Map(files.map((file) => [file, readFileSync(file, 'utf8')]))
const routes = files.filter((file) => file.startsWith('app/api/'))

interface Import {
  from: string
  specifier: string
  /** the file of ours that is imported; undefined for a package */
  file: string | undefined
  typeOnly: boolean
}

const STATEMENT =
  /^(?:import|export)\s(type\s)?[^'"`;]*?from\s+'([^']+)'|^import\s+'([^']+)'|\bimport\(\s*'([^']+)'\s*\)/gm

/** The one file of the embedded ledger that others import. */
const DOOR = 'lib/devnet/devnet.ts'

const imports = importsIn([...sources])

function importsIn(read: readonly [file: string, source: string][]): Import[] {
  return read.flatMap(([from, source]) =>
    [...source.matchAll(STATEMENT)].map(([, type, named, bare, dynamic]) => {
      const specifier = named ?? bare ?? dynamic ?? ''
      return { from, specifier, file: resolve(from, specifier), typeOnly: type !== undefined }
    }),
  )
}

function resolve(from: string, specifier: string): string | undefined {
  if (specifier.startsWith('.')) return join(dirname(from), specifier)
  return specifier.startsWith('#') ? specifier.slice(1) : undefined
}

/** The rooms of each layer. A layer imports its own rooms and those of the layers that stand to the right of it. */
const LAYERS = [
  ['app', 'start'],
  ['cli'],
  ['api', 'openapi'],
  ['server', 'operator', 'provisioning'],
  ['relay'],
  ['sponsor', 'funding'],
  ['directory'],
  ['auth'],
  ['submission'],
  ['prover', 'wallet'],
  ['stellar', 'db', 'http', 'text', 'config', 'observability'],
  ['drizzle'],
]

function roomOf(file: string): string {
  if (file === 'instrumentation.ts') return 'start'
  const [top, folder] = file.split('/')
  return (top === 'lib' ? folder : top) ?? ''
}

const layerOf = (file: string) => LAYERS.findIndex((rooms) => rooms.includes(roomOf(file)))

const told = (found: Import[]) => found.map(({ from, specifier }) => `${from} imports ${specifier}`)

test('the statements are found: one of every sort', () => {
  const has = (from: string, file: string) => imports.some((found) => found.from === from && found.file === file)
  expect(has('app/api/transfer/route.ts', 'lib/api/transfers.ts')).toBe(true)
  expect(has('lib/http/resource.ts', 'lib/http/refusal.ts')).toBe(true)
  expect(has('instrumentation.ts', 'lib/server/start.ts')).toBe(true)
  expect(has('lib/server/start.ts', 'lib/devnet/devnet.ts')).toBe(true)
  expect(has('lib/db/schema.ts', 'drizzle/schema/transfers.ts')).toBe(true)
  expect(
    imports.find(({ from, file }) => from === 'lib/server/services.ts' && file === 'lib/server/settings.ts')?.typeOnly,
  ).toBe(true)
})

test('every import of ours names a file that is there, with its ending', () => {
  expect(told(imports.filter(({ file }) => file && (extname(file) === '' || !existsSync(file))))).toEqual([])
})

describe('the direction of imports', () => {
  test('is downwards', () => {
    const upward = imports.filter(({ from, file }) => {
      if (!file || roomOf(from) === roomOf(file)) return false
      if (roomOf(from) === 'devnet') return layerOf(file) < layerOf('lib/wallet/keys.ts')
      if (roomOf(file) === 'devnet') return !['server', 'cli'].includes(roomOf(from))
      return layerOf(file) < layerOf(from)
    })
    expect(told(upward)).toEqual([])
  })

  test('into the embedded ledger is through its door', () => {
    const tests = globSync('tests/**/*.{ts,tsx}').filter((file) => !file.startsWith('tests/devnet/'))
    const read = tests.map((file): [string, string] => [file, readFileSync(file, 'utf8')])
    const inside = [...imports, ...importsIn(read)].filter(
      ({ from, file }) => roomOf(from) !== 'devnet' && file?.startsWith('lib/devnet/') && file !== DOOR,
    )
    expect(told(inside)).toEqual([])
  })

  test('is downwards between the rooms of the embedded ledger too', () => {
    const roomOfDevnet = (file: string) => file.split('/').slice(2, -1)[0] ?? 'door'
    const floor = (file: string) =>
      ['door', 'services', 'rpc', 'apply', 'host', 'transaction', 'state'].indexOf(roomOfDevnet(file))
    const own = imports.filter(({ from, file }) => roomOf(from) === 'devnet' && file && roomOf(file) === 'devnet')
    expect(own.filter(({ from }) => floor(from) < 0).map(({ from }) => from)).toEqual([])
    expect(told(own.filter(({ from, file = '' }) => floor(file) < floor(from)))).toEqual([])
  })

  test('never goes round in a circle', () => {
    const next = Map.groupBy(
      imports.filter(({ typeOnly }) => !typeOnly),
      ({ from }) => from,
    )
    const done = new Set<string>()
    const circles: string[] = []
    const visit = (file: string, path: string[]) => {
      if (path.includes(file)) circles.push([...path.slice(path.indexOf(file)), file].join(' → '))
      if (done.has(file) || path.includes(file)) return
      for (const { file: imported } of next.get(file) ?? []) if (imported) visit(imported, [...path, file])
      done.add(file)
    }
    for (const file of files) visit(file, [])
    expect(circles).toEqual([])
  })

  test('lib knows neither Next nor React, and app no database', () => {
    const wrong = imports.filter(({ from, specifier }) =>
      from.startsWith('lib/')
        ? /^(next|react|react-dom)(\/|$)/.test(specifier)
        : from.startsWith('app/') && /^(drizzle-orm|pg|@electric-sql\/pglite|@vercel\/postgres)(\/|$)/.test(specifier),
    )
    expect(told(wrong)).toEqual([])
  })

  test('a relative one stays inside its folder of lib', () => {
    const room = (file: string) => file.split('/').slice(0, 2).join('/')
    const wrong = imports.filter(
      ({ from, specifier, file }) => specifier.startsWith('../') && file && room(from) !== room(file),
    )
    expect(told(wrong)).toEqual([])
  })
})

describe('process.env', () => {
  test('is read in lib/config/environment.ts alone; the commands pass it on to what they start', () => {
    const readers = files.filter((file) => {
      const source = sources.get(file) ?? ''
      const rest = file.startsWith('lib/cli/') ? source.replaceAll('...process.env', '') : source
      return /process\.env|process\[|env\s*[,}].*from 'node:process'/.test(rest)
    })
    expect(readers).toEqual(['instrumentation.ts', 'lib/config/environment.ts'])
    expect(sources.get('instrumentation.ts')?.match(/process\.env\.?\w*/g)).toEqual(['process.env.NEXT_RUNTIME'])
    expect(sources.get('lib/config/environment.ts')?.match(/process\.env/g)).toHaveLength(1)
  })
})

test('no server action: a proxy may rewrite Host, and machines that build for themselves know other ids', () => {
  const actions = files.filter((file) => /^\s*['"]use server['"]/m.test(sources.get(file) ?? ''))
  expect(actions).toEqual([])
})

describe('every page of the operator’s', () => {
  const pages = files.filter((file) => /^app\/\(operator\)\/.*page\.tsx$/.test(file))

  test.each(pages)('%s asks for the operator before anything else', (file) => {
    const [, body = ''] = (sources.get(file) ?? '').split(/^export default async function /m)
    const awaited = [...body.matchAll(/await ([\w.]+)/g)].map(([, what]) => what)
    const asked = awaited.filter((what) => what !== 'readQuery' && what !== 'params')
    expect(asked[0]).toBe('requireOperator')
  })

  test('is found', () => {
    expect(pages.length).toBeGreaterThan(6)
  })
})

test('paths into DATA_DIR are made by dataPath, which no build follows to the keys there', () => {
  const joining = imports.filter(({ from, specifier }) => specifier === 'node:path' && !from.startsWith('lib/cli/'))
  // One names a folder of the project, the other a module.
  const named = ['lib/db/migration.ts', 'lib/relay/prover.ts']
  expect(joining.map(({ from }) => from).filter((from) => !named.includes(from))).toEqual([])
})

test('no page and no route loads the prover or the verifier of proofs', () => {
  const reached = new Set(files.filter((file) => file.startsWith('app/')))
  for (const file of reached) {
    for (const { from, file: imported, typeOnly } of imports) {
      if (from === file && imported !== undefined && !typeOnly) reached.add(imported)
    }
  }
  expect(reached).toContain('lib/server/services.ts')
  const provers = ['backend', 'loading', 'prover', 'verifier'].map((name) => `lib/prover/${name}.ts`)
  expect(provers.filter((file) => !files.includes(file))).toEqual([])
  expect(provers.filter((file) => reached.has(file))).toEqual([])
})

describe('files', () => {
  test('are named for what they are', () => {
    const forbidden = /^(utils?|helpers?|common|managers?|types?|constants?|index|misc|shared)$/
    const names = files.filter((file) => file.split('/').some((part) => forbidden.test(basename(part, extname(part)))))
    expect(names).toEqual([])
  })

  test('are short', () => {
    const long = files.filter(
      (file) => !file.startsWith('drizzle/') && (sources.get(file)?.split('\n').length ?? 0) > 250,
    )
    expect(long).toEqual([])
  })

  test('have nothing switched off', () => {
    const off = /biome-ignore|@ts-(ignore|expect-error|nocheck)|\bTODO\b|\bFIXME\b/
    expect(files.filter((file) => off.test(sources.get(file) ?? ''))).toEqual([])
  })
})

const METHODS = 'export const { GET, POST, PUT, PATCH, DELETE, OPTIONS }'
const literally = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')

describe.each(routes)('%s', (file) => {
  const source = sources.get(file) ?? ''

  test('exports the operations of its path, and nothing else', () => {
    const path = dirname(file).slice('app/api'.length).replaceAll('[', '{').replaceAll(']', '}')
    const [, exported = ''] = source.split(/^(?=export )/m)
    if (path.includes('...')) expect(exported).toBe(`${METHODS} = resource({}, { route: 'none' })\n`)
    else expect(exported).toMatch(RegExp(`^${literally(`${METHODS} = routes('${path}', `)}(\\w+_)?OPERATIONS\\)\n$`))
    expect(source.split('\n').filter((line) => /^import /.test(line)).length).toBeLessThan(3)
  })
})
