import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { completeEnv, readEnvFile, readVariables, writeEnvFile } from '#lib/setup/env-file.ts'

const wanted = [{ heading: 'Keys', variables: { SECRET: 'new', OTHER: '{"json": 1}' } }]
const complete = (text: string) => completeEnv(text, wanted, { file: 'service.env', growing: [] })

test.each([
  ['', `# Keys\nSECRET=new\nOTHER='{"json": 1}'\n`],
  ['MINE=1', `MINE=1\n\n# Keys\nSECRET=new\nOTHER='{"json": 1}'\n`],
  ['SECRET=\nMINE=1\n', `SECRET=new\nMINE=1\n\n# Keys\nOTHER='{"json": 1}'\n`],
  ['SECRET=\nOTHER=', `SECRET=new\nOTHER='{"json": 1}'`],
  ['OTHER=\r\nSECRET=\r\n', `OTHER='{"json": 1}'\r\nSECRET=new\r\n`],
  ['  export SECRET=""\nOTHER= # another', `  export SECRET=new\nOTHER='{"json": 1}' # another`],
  ['#SECRET=\nSECRETS=\nOTHER=', `#SECRET=\nSECRETS=\nOTHER='{"json": 1}'\n\n# Keys\nSECRET=new\n`],
  ['SECRET=old\nSECRET=\nOTHER=', `SECRET=old\nSECRET=new\nOTHER='{"json": 1}'`],
])('fills empty variables in place: %j becomes %j', (text, whole) => {
  expect(complete(text)).toBe(whole)
  expect(readVariables(whole)).toMatchObject({ SECRET: 'new', OTHER: '{"json": 1}' })
  expect(complete(whole)).toBe(whole)
})

test.each(['SECRET=other', 'SECRET=\nSECRET=other', 'SECRET=newer', 'SECRET=ne'])(
  'rejects another value: %j',
  (text) => {
    expect(() => complete(text)).toThrow('SECRET: has another value in service.env')
  },
)

test('extends a list in place, and rejects one that is longer or different', () => {
  const grow = (text: string) =>
    completeEnv(text, [{ heading: 'Keys', variables: { SEEDS: 'a,b' } }], { file: 'service.env', growing: ['SEEDS'] })
  expect(grow('SEEDS=a # mine\nMINE=1\n')).toBe('SEEDS=a,b # mine\nMINE=1\n')
  for (const text of ['SEEDS=b', 'SEEDS=a,b,c']) expect(() => grow(text)).toThrow('SEEDS: has another value')
})

test.each(['a b # c', 'x=$HOME $& `', '{"a": "b"}', 'back\\slash\\n', ' spaces '])(
  'reads %j as it was written',
  (value) => {
    const write = (text: string) =>
      completeEnv(text, [{ heading: 'Keys', variables: { SECRET: value } }], { file: 'service.env', growing: [] })
    for (const text of ['', 'SECRET=\n']) expect(readVariables(write(text))).toEqual({ SECRET: value })
  },
)

test('rejects a value that does not fit on a line, naming its variable', () => {
  const sections = [{ heading: 'Keys', variables: { SECRET: `it's` } }]
  expect(() => completeEnv('', sections, { file: 'service.env', growing: [] })).toThrow('SECRET: cannot be written')
})

test('treats an empty variable as unset', () => {
  expect(readVariables(`A=\nB=""\nC=''\nD= # none\n#E=1\nF=1\n`)).toEqual({ F: '1' })
})

function openFolder() {
  const directory = mkdtempSync(join(tmpdir(), 'payroll-env-file-test-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  return { directory, file: join(directory, 'service.env') }
}

test.each(['SECRET=new\n', 'SECRET=old\n'])(
  'makes the file readable only by its owner, even if it contained %j and was readable by everyone',
  (old) => {
    const { directory, file } = openFolder()
    expect(readEnvFile(file)).toBe('')
    writeFileSync(file, old)
    // An interrupted run has left this temporary file, readable by everyone.
    writeFileSync(`${file}.new`, 'SECR')
    for (const name of readdirSync(directory)) chmodSync(join(directory, name), 0o644)
    writeEnvFile(file, 'SECRET=new\n')
    expect([readEnvFile(file), statSync(file).mode & 0o777]).toEqual(['SECRET=new\n', 0o600])
  },
)

test('reads .env in exactly the commands that docs/configuration.md names', () => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }
  const [, commandList = ''] =
    /\n\n([^.]*) and `compose.yaml` read `.env`/.exec(readFileSync('docs/configuration.md', 'utf8')) ?? []
  const reading = Object.entries(scripts).filter(([, command]) => command.includes('--env-file-if-exists=.env '))
  const commands = reading.map(([name]) => (name === 'start' ? '`npm start`' : `\`npm run ${name}\``))
  expect(commandList.split(', ').sort()).toEqual(commands.sort())
})
