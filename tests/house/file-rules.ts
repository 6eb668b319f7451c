import { globSync, readFileSync } from 'node:fs'
import { basename, dirname, extname } from 'node:path'
import { files, type Rule, sources, testSources } from './sources.ts'

const NO_NAME = /^(utils?|helpers?|common|managers?|types?|constants?|index|misc|shared)$/
const SWITCHED_OFF = /biome-ignore|@ts-(ignore|expect-error|nocheck)|\bTODO\b|\bFIXME\b/
const LONGEST = 250
const METHODS = 'export const { GET, POST, PUT, PATCH, DELETE, OPTIONS }'

const containing = (pattern: RegExp) => files.filter((file) => pattern.test(sources.get(file) ?? ''))

/** Why a route file is more than its operations, or undefined. */
function faultOfRoute(file: string): string | undefined {
  const source = sources.get(file) ?? ''
  const path = dirname(file).slice('app/api'.length).replaceAll('[', '{').replaceAll(']', '}')
  const [, exported = ''] = source.split(/^(?=export )/m)
  const expected = path.includes('...') ? `${METHODS} = resource({}, ` : `${METHODS} = routes('${path}', `
  if (!exported.startsWith(expected)) return `${file} does not begin with ${expected}`
  if (exported.trimEnd().includes('\n')) return `${file} exports more than the operations of its path`
  return source.split('\n').filter((line) => /^import /.test(line)).length > 2 ? `${file} imports more` : undefined
}

/** Whether a page of the operator's asks for the operator before it waits for anything but its parameters. */
function asksFirst(file: string): boolean {
  const [, body = ''] = (sources.get(file) ?? '').split(/^export default async function /m)
  const awaited = [...body.matchAll(/await ([\w.]+)/g)].map(([, what]) => what)
  return awaited.filter((what) => what !== 'readQuery' && what !== 'params')[0] === 'requireOperator'
}

/** The programs that package.json runs, each by a command of its own. */
function programs(): string[] {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }
  return Object.values(scripts).flatMap((script) => /^(?:exec )?node (?:--\S+ )*(\S+\.ts)$/.exec(script)?.[1] ?? [])
}

/** The patterns of files in the settings of Vitest, one for each of the alternatives in braces. */
function patternsOfTests(): string[] {
  const named = testSources.get('tests/vitest.config.ts')?.matchAll(/'(tests\/[^']+)'/g) ?? []
  return [...named].flatMap(([, pattern = '']) => alternativesOf(pattern))
}

function alternativesOf(pattern: string): string[] {
  const [, before = '', names, after = ''] = /^(.*?)\{([^}]*)\}(.*)$/.exec(pattern) ?? []
  return names?.split(',').flatMap((name) => alternativesOf(`${before}${name}${after}`)) ?? [pattern]
}

export const FILE_RULES: Rule[] = [
  {
    name: 'a command answers --help',
    violations: () => programs().filter((file) => !/\brunCommand\(|\bhelp: /.test(readFileSync(file, 'utf8'))),
  },
  {
    name: 'a file is named for what it is',
    violations: () =>
      files.filter((file) => file.split('/').some((part) => NO_NAME.test(basename(part, extname(part))))),
  },
  {
    name: 'two files of a folder never differ by an s alone',
    violations: () =>
      [...files, ...testSources.keys()].filter((file) => {
        const many = file.replace(/(\.(slow|isolated))?(\.(db|pg))?(\.test)?\.tsx?$/, 's$&')
        return sources.has(many) || testSources.has(many)
      }),
  },
  {
    name: `a file has at most ${LONGEST} lines`,
    violations: () =>
      files.filter((file) => !file.startsWith('drizzle/') && (sources.get(file)?.split('\n').length ?? 0) > LONGEST),
  },
  { name: 'nothing is switched off', violations: () => containing(SWITCHED_OFF) },
  {
    name: 'process.env is read in lib/config/environment.ts; commands pass it on to what they start',
    violations: () => {
      const readers = files.filter((file) => {
        const source = sources.get(file) ?? ''
        const rest = file.startsWith('lib/cli/') ? source.replaceAll('...process.env', '') : source
        return /process\.env(?!\.NEXT_RUNTIME)|process\[|env\s*[,}].*from 'node:process'/.test(rest)
      })
      return readers.filter((file) => file !== 'lib/config/environment.ts')
    },
  },
  {
    name: 'there is no server action: a proxy may rewrite Host, and machines that build for themselves know other ids',
    violations: () => containing(/^\s*['"]use server['"]/m),
  },
  {
    name: 'a page of the operator’s asks for the operator before anything else',
    violations: () => files.filter((file) => /^app\/\(operator\)\/.*page\.tsx$/.test(file) && !asksFirst(file)),
  },
  {
    name: 'a route file exports the operations of its path, and nothing else',
    violations: () =>
      files.filter((file) => /^app\/api\/.*route\.ts$/.test(file)).flatMap((file) => faultOfRoute(file) ?? []),
  },
  {
    name: 'a file that the settings of Vitest name is there',
    violations: () => patternsOfTests().filter((pattern) => globSync(pattern).length === 0),
  },
]
