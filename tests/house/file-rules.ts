import { readFileSync } from 'node:fs'
import { basename, dirname, extname } from 'node:path'
import { files, importsIn, type Rule, sources, testSources } from './sources.ts'

const NO_NAME = /^(utils?|helpers?|common|managers?|types?|constants?|index|misc|shared)$/
const SWITCHED_OFF = /biome-ignore|@ts-(ignore|expect-error|nocheck)|\bTODO\b|\bFIXME\b/
const LONGEST = 250
const METHODS = 'export const { GET, POST, PUT, PATCH, DELETE, OPTIONS }'

const TEST_IMPORTS = importsIn(testSources)

const containing = (pattern: RegExp) => files.filter((file) => pattern.test(sources.get(file) ?? ''))

/** The problem of a route file that contains more than its operations, or undefined. */
function faultOfRoute(file: string): string | undefined {
  const source = sources.get(file) ?? ''
  const path = dirname(file).slice('app/api'.length).replaceAll('[', '{').replaceAll(']', '}')
  const [, exported = ''] = source.split(/^(?=export )/m)
  const expected = path.includes('...') ? `${METHODS} = resource({}, ` : `${METHODS} = routes('${path}', `
  // A long path takes three lines.
  const statement = exported
    .trim()
    .replace(/\(\n\s+/, '(')
    .replace(/,\n\s+/, ', ')
    .replace(/,\n\)$/, ')')
  if (!statement.startsWith(expected)) return `${file} does not begin with ${expected}`
  if (statement.includes('\n')) return `${file} exports more than the operations of its path`
  return source.split('\n').filter((line) => /^import /.test(line)).length > 2 ? `${file} imports more` : undefined
}

/** Whether an operator page, or the function that makes it, requires the operator before it awaits anything except its parameters. */
function requiresOperatorFirst(file: string): boolean {
  const source = sources.get(file) ?? ''
  if (/^export default (listPage|recordPage)\(/m.test(source)) return true
  const [, body = ''] = source.split(/^(?:export default| {2}return) async function /m)
  const awaited = [...body.matchAll(/await ([\w.]+)/g)].map(([, what]) => what)
  return awaited.filter((what) => what !== 'readQuery' && what !== 'params')[0] === 'requireOperator'
}

/** The programs that the scripts of package.json run. */
function programs(): string[] {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }
  return Object.values(scripts).flatMap((script) => /^(?:exec )?node (?:--\S+ )*(\S+\.ts)$/.exec(script)?.[1] ?? [])
}

/** The test files that use a test database, directly or through a file they import. */
function databaseTests(): Set<string> {
  const users = new Set(['tests/support/database.ts'])
  for (const user of users) {
    for (const { from, file, typeOnly } of TEST_IMPORTS) if (file === user && !typeOnly) users.add(from)
  }
  return new Set([...users].filter((file) => file.endsWith('.test.ts')))
}

export const FILE_RULES: Rule[] = [
  {
    name: 'a command supports --help',
    violations: () => programs().filter((file) => !/\brunCommands?\(|\bhelp: /.test(readFileSync(file, 'utf8'))),
  },
  {
    name: 'a command prints through lib/cli/process/output.ts',
    // The setup redirects what libraries print, so that standard output contains only its document.
    violations: () =>
      containing(/(?<!console\.log = )\bconsole\.(?!log = )|\bprocess\.std(out|err)\.write/).filter(
        (file) => file.startsWith('lib/cli/') && file !== 'lib/cli/process/output.ts',
      ),
  },
  {
    name: 'a file name is not a generic word',
    violations: () =>
      files.filter((file) => file.split('/').some((part) => NO_NAME.test(basename(part, extname(part))))),
  },
  {
    name: 'no two files of a folder differ only by an s',
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
  { name: 'no check is disabled', violations: () => containing(SWITCHED_OFF) },
  {
    name: 'process.env is read in lib/config; commands pass it on to what they start',
    violations: () => {
      const readers = files.filter((file) => {
        const source = sources.get(file) ?? ''
        const rest = file.startsWith('lib/cli/') ? source.replaceAll('...process.env', '') : source
        return /process\.env(?!\.NEXT_RUNTIME)|process\[|env\s*[,}].*from 'node:process'/.test(rest)
      })
      return readers.filter((file) => !['lib/config/environment.ts', 'lib/config/version.ts'].includes(file))
    },
  },
  {
    name: 'there is no server action: a proxy may rewrite Host, and separately built instances have other ids',
    violations: () => containing(/^\s*['"]use server['"]/m),
  },
  {
    name: 'an operator page requires the operator before anything else',
    violations: () =>
      files.filter((file) => /^app\/\(operator\)\/.*page\.tsx$/.test(file) && !requiresOperatorFirst(file)),
  },
  {
    name: 'a route file exports the operations of its path, and nothing else',
    violations: () =>
      files.filter((file) => /^app\/api\/.*route\.ts$/.test(file)).flatMap((file) => faultOfRoute(file) ?? []),
  },
  {
    name: 'a test file is named *.pg.test.ts or *.db.test.ts if and only if it uses a test database',
    violations: () => {
      const users = databaseTests()
      const isNamed = (file: string) => /\.(pg|db)\.test\.ts$/.test(file)
      return [...testSources.keys()].filter((file) => file.endsWith('.test.ts') && isNamed(file) !== users.has(file))
    },
  },
]
