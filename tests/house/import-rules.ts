import { existsSync } from 'node:fs'
import { extname } from 'node:path'
import { files, type Import, importsIn, type Rule, sources, testSources } from './sources.ts'

const imports = importsIn(sources)

/** The one file of the embedded ledger that other folders import. */
const DEVNET_ENTRY = 'lib/devnet/devnet.ts'

/** The folders of each step, from the top down. A file imports its own folder and the folders of lower steps. */
const STEPS = [
  ['app', 'start', 'cli'],
  ['api'],
  ['server', 'setup'],
  ['dashboard', 'events'],
  ['relay'],
  ['faucet'],
  ['transfers'],
  ['directory'],
  ['auth'],
  ['sdk'],
  ['disclosure'],
  ['prover'],
  ['wallet', 'archive'],
  ['stellar', 'db'],
  ['http'],
  ['config'],
  ['turns'],
  ['text', 'observability', 'drizzle'],
  ['refusal'],
]

/** The folders that ship to browsers, and the folders that only a server has. */
const BROWSER = ['sdk', 'disclosure', 'prover', 'wallet', 'stellar']
const SERVER = ['http', 'db', 'turns', 'refusal']

/** The folders of the embedded ledger, from the top down. */
const DEVNET_STEPS = ['entry', 'services', 'rpc', 'apply', 'host', 'transaction', 'state']

function folderOf(file: string): string {
  if (file === 'instrumentation.ts' || file === 'proxy.ts') return 'start'
  const [top, folder] = file.split('/')
  return (top === 'lib' ? folder : top) ?? ''
}

const stepOf = (file: string) => STEPS.findIndex((folders) => folders.includes(folderOf(file)))
const devnetStepOf = (file: string) => DEVNET_STEPS.indexOf(file.split('/').slice(2, -1)[0] ?? 'entry')
const describe = (violations: Import[]) => violations.map(({ from, specifier }) => `${from} imports ${specifier}`)

function isUpward({ from, file }: Import): boolean {
  if (!file || file === 'package.json' || folderOf(from) === folderOf(file)) return false
  if (folderOf(from) === 'devnet') return stepOf(file) < stepOf('lib/prover/prover.ts')
  if (folderOf(file) === 'devnet') return !['server', 'cli'].includes(folderOf(from))
  return stepOf(file) <= stepOf(from)
}

function findCycles(): string[] {
  const next = Map.groupBy(imports, ({ from }) => from)
  const done = new Set<string>()
  const cycles: string[] = []
  const visit = (file: string, path: string[]) => {
    if (path.includes(file)) cycles.push([...path.slice(path.indexOf(file)), file].join(' → '))
    if (done.has(file) || path.includes(file)) return
    for (const { file: imported } of next.get(file) ?? []) if (imported) visit(imported, [...path, file])
    done.add(file)
  }
  for (const file of files) visit(file, [])
  return cycles
}

/** The files of the prover that a page or route loads. */
function findLoadedProvers(): string[] {
  const reached = new Set(files.filter((file) => file.startsWith('app/')))
  for (const file of reached) {
    for (const { from, file: imported, typeOnly } of imports) {
      if (from === file && imported !== undefined && !typeOnly) reached.add(imported)
    }
  }
  return ['backend', 'prover', 'verifier', 'node/loading', 'node/prover']
    .map((name) => `lib/prover/${name}.ts`)
    .filter((file) => reached.has(file))
}

const FRAMEWORK = /^(next|react|react-dom)(\/|$)/
const DATABASES = /^(drizzle-orm|pg|@electric-sql\/pglite|@vercel\/postgres)(\/|$)/

/** The files that an entry of lib/sdk loads, and that use Node: browsers have neither its modules nor Buffer. */
function findNodeInSdk(): string[] {
  const loaded = new Set(files.filter((file) => /^lib\/sdk\/(?!pack\b)[^/]+\.ts$/.test(file)))
  for (const from of loaded) {
    for (const { file } of imports.filter((each) => each.from === from)) if (file && sources.has(file)) loaded.add(file)
  }
  const usesNode = (file: string) => /from 'node:|\bBuffer\b(?!\()|\bprocess\./.test(codeOf(sources.get(file) ?? ''))
  return [...loaded].filter(usesNode)
}

/** The code without comments and strings in backquotes, which may mention anything. */
const codeOf = (source: string): string => source.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')

export const IMPORT_RULES: Rule[] = [
  {
    name: 'an import names an existing file, with its extension',
    violations: () =>
      describe(
        imports.filter(
          ({ file }) =>
            file && (extname(file) === '' || !(existsSync(file) || existsSync(file.replace(/\.js$/, '.d.ts')))),
        ),
      ),
  },
  { name: 'imports go downwards', violations: () => describe(imports.filter(isUpward)) },
  {
    name: 'code for browsers imports no folder that only a server has',
    violations: () =>
      describe(
        imports.filter(({ from, file }) => file && BROWSER.includes(folderOf(from)) && SERVER.includes(folderOf(file))),
      ),
  },
  {
    name: 'the parts of wallet, prover, disclosure and stellar that a browser loads import no Node built-in, and no folder that does',
    violations: () =>
      describe(
        imports.filter(({ from, specifier, file }) => {
          if (!/^lib\/(wallet|prover|disclosure|stellar)\/[^/]+\.ts$/.test(from)) return false
          return specifier.startsWith('node:') || /^lib\/(wallet|prover|disclosure|stellar)\/node\//.test(file ?? '')
        }),
      ),
  },
  { name: 'what the package for frontends loads uses nothing of Node', violations: findNodeInSdk },
  {
    name: 'sdk imports wallet, prover, disclosure and text, and only cli imports sdk',
    violations: () =>
      describe(
        imports.filter(({ from, file }) => {
          // The program that packs it names the version.
          if (!file || folderOf(from) === folderOf(file) || from === 'lib/sdk/pack.ts') return false
          if (folderOf(from) === 'sdk') return !['wallet', 'prover', 'disclosure', 'text'].includes(folderOf(file))
          return folderOf(file) === 'sdk' && folderOf(from) !== 'cli'
        }),
      ),
  },
  {
    name: 'other folders import the embedded ledger only through its entry',
    violations: () => {
      const tests = [...testSources].filter(([file]) => !file.startsWith('tests/devnet/'))
      const inside = [...imports, ...importsIn(new Map(tests))].filter(
        ({ from, file }) => folderOf(from) !== 'devnet' && file?.startsWith('lib/devnet/') && file !== DEVNET_ENTRY,
      )
      return describe(inside)
    },
  },
  {
    name: 'imports between the folders of the embedded ledger go downwards',
    violations: () => {
      const own = imports.filter(({ from, file }) => folderOf(from) === 'devnet' && file && folderOf(file) === 'devnet')
      return describe(
        own.filter(({ from, file = '' }) => devnetStepOf(from) < 0 || devnetStepOf(file) < devnetStepOf(from)),
      )
    },
  },
  { name: 'imports have no cycles, type imports included', violations: findCycles },
  {
    name: 'lib imports neither Next nor React, and app no database',
    violations: () =>
      describe(
        imports.filter(({ from, specifier }) =>
          from.startsWith('lib/') ? FRAMEWORK.test(specifier) : from.startsWith('app/') && DATABASES.test(specifier),
        ),
      ),
  },
  {
    name: 'a relative import stays inside its folder',
    violations: () =>
      describe(
        imports.filter(
          ({ from, specifier, file }) => specifier.startsWith('../') && file && folderOf(from) !== folderOf(file),
        ),
      ),
  },
  { name: 'no page or route loads the prover or the verifier', violations: findLoadedProvers },
  {
    name: 'paths into DATA_DIR are made by dataPath, so that no build traces the keys there',
    violations: () => {
      // One is for a folder of the project, the other for a temporary one.
      const allowed = ['lib/db/migration.ts', 'lib/setup/channels.ts']
      const joining = imports.filter(({ from, specifier }) => specifier === 'node:path' && !from.startsWith('lib/cli/'))
      return describe(joining.filter(({ from }) => !allowed.includes(from)))
    },
  },
]
