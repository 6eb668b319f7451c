import { existsSync } from 'node:fs'
import { extname } from 'node:path'
import { files, type Import, importsIn, type Rule, sources, testSources } from './sources.ts'

const imports = importsIn(sources)

/** The one file of the embedded ledger that others import. */
const DOOR = 'lib/devnet/devnet.ts'

/** The rooms of each layer. A room imports itself and the rooms of the layers below it. */
const LAYERS = [
  ['app', 'start'],
  ['cli'],
  ['api'],
  ['setup'],
  ['server', 'dashboard'],
  ['relay'],
  ['faucet'],
  ['transfers'],
  ['directory'],
  ['auth'],
  ['disclosure'],
  ['sdk'],
  ['prover'],
  ['wallet', 'archive'],
  ['stellar', 'db'],
  ['http'],
  ['config'],
  ['text', 'observability', 'drizzle'],
  ['refusal'],
]

/** The rooms of the embedded ledger, from the top down. */
const FLOORS = ['door', 'services', 'rpc', 'apply', 'host', 'transaction', 'state']

function roomOf(file: string): string {
  if (file === 'instrumentation.ts' || file === 'proxy.ts') return 'start'
  const [top, folder] = file.split('/')
  return (top === 'lib' ? folder : top) ?? ''
}

const layerOf = (file: string) => LAYERS.findIndex((rooms) => rooms.includes(roomOf(file)))
const floorOf = (file: string) => FLOORS.indexOf(file.split('/').slice(2, -1)[0] ?? 'door')
const told = (found: Import[]) => found.map(({ from, specifier }) => `${from} imports ${specifier}`)

function isUpward({ from, file }: Import): boolean {
  if (!file || roomOf(from) === roomOf(file)) return false
  if (roomOf(from) === 'devnet') return layerOf(file) < layerOf('lib/prover/prover.ts')
  if (roomOf(file) === 'devnet') return !['server', 'cli'].includes(roomOf(from))
  return layerOf(file) <= layerOf(from)
}

function circles(): string[] {
  const next = Map.groupBy(imports, ({ from }) => from)
  const done = new Set<string>()
  const found: string[] = []
  const visit = (file: string, path: string[]) => {
    if (path.includes(file)) found.push([...path.slice(path.indexOf(file)), file].join(' → '))
    if (done.has(file) || path.includes(file)) return
    for (const { file: imported } of next.get(file) ?? []) if (imported) visit(imported, [...path, file])
    done.add(file)
  }
  for (const file of files) visit(file, [])
  return found
}

/** The files that pages and routes load, and must not: the prover and the verifier of proofs. */
function provers(): string[] {
  const reached = new Set(files.filter((file) => file.startsWith('app/')))
  for (const file of reached) {
    for (const { from, file: imported, typeOnly } of imports) {
      if (from === file && imported !== undefined && !typeOnly) reached.add(imported)
    }
  }
  return ['backend', 'loading', 'prover', 'verifier']
    .map((name) => `lib/prover/${name}.ts`)
    .filter((file) => reached.has(file))
}

const FRAMEWORK = /^(next|react|react-dom)(\/|$)/
const DATABASES = /^(drizzle-orm|pg|@electric-sql\/pglite|@vercel\/postgres)(\/|$)/

export const IMPORT_RULES: Rule[] = [
  {
    name: 'an import names a file that is there, with its ending',
    violations: () => told(imports.filter(({ file }) => file && (extname(file) === '' || !existsSync(file)))),
  },
  { name: 'imports go downwards', violations: () => told(imports.filter(isUpward)) },
  {
    name: 'the embedded ledger is entered by its door',
    violations: () => {
      const tests = [...testSources].filter(([file]) => !file.startsWith('tests/devnet/'))
      const inside = [...imports, ...importsIn(new Map(tests))].filter(
        ({ from, file }) => roomOf(from) !== 'devnet' && file?.startsWith('lib/devnet/') && file !== DOOR,
      )
      return told(inside)
    },
  },
  {
    name: 'imports between the rooms of the embedded ledger go downwards',
    violations: () => {
      const own = imports.filter(({ from, file }) => roomOf(from) === 'devnet' && file && roomOf(file) === 'devnet')
      return told(own.filter(({ from, file = '' }) => floorOf(from) < 0 || floorOf(file) < floorOf(from)))
    },
  },
  { name: 'imports never go round in a circle, those of types included', violations: circles },
  {
    name: 'lib knows neither Next nor React, and app no database',
    violations: () =>
      told(
        imports.filter(({ from, specifier }) =>
          from.startsWith('lib/') ? FRAMEWORK.test(specifier) : from.startsWith('app/') && DATABASES.test(specifier),
        ),
      ),
  },
  {
    name: 'a relative import stays inside its room',
    violations: () =>
      told(
        imports.filter(
          ({ from, specifier, file }) => specifier.startsWith('../') && file && roomOf(from) !== roomOf(file),
        ),
      ),
  },
  { name: 'no page and no route loads the prover or the verifier of proofs', violations: provers },
  {
    name: 'paths into DATA_DIR are made by dataPath, which no build follows to the keys there',
    violations: () => {
      // The first names a folder of the project, the second a temporary one.
      const named = ['lib/db/migration.ts', 'lib/setup/channels.ts']
      const joining = imports.filter(({ from, specifier }) => specifier === 'node:path' && !from.startsWith('lib/cli/'))
      return told(joining.filter(({ from }) => !named.includes(from)))
    },
  },
]
