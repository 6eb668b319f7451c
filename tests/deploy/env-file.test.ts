import { expect, test } from 'vitest'
import { completeEnv, readVariables } from '#lib/provisioning/env-file.ts'

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
])('%j becomes %j: empty variables are filled in place', (text, whole) => {
  expect(complete(text)).toBe(whole)
  expect(readVariables(whole)).toMatchObject({ SECRET: 'new', OTHER: '{"json": 1}' })
  expect(complete(whole)).toBe(whole)
})

test.each(['SECRET=other', 'SECRET=\nSECRET=other', 'SECRET=newer'])('%j is refused: another value', (text) => {
  expect(() => complete(text)).toThrow('SECRET: has another value in service.env')
})
