import { createConfig, lintFromString } from '@redocly/openapi-core'
import { expect, test } from 'vitest'
import { interfaceDocument } from '#lib/api/interface.ts'

/** The document as it is sent: JSON drops the fields that are undefined. */
const sent = () => JSON.parse(JSON.stringify(interfaceDocument('https://payroll.stellar.test/api')))

const config = await createConfig({ extends: ['recommended'] })

async function lint(document: object): Promise<string[]> {
  const problems = await lintFromString({ source: JSON.stringify(document), config })
  return problems.map(({ ruleId }) => ruleId)
}

test('passes the recommended rules of redocly', async () => {
  const problems = await lintFromString({ source: JSON.stringify(sent()), config })
  expect(problems.map(({ ruleId, message }) => `${ruleId}: ${message}`)).toEqual([])
})

const { license: _, ...unlicensed } = sent().info
const { '/me': me, ...paths } = sent().paths
test.each([
  ['a number for the responses', { paths: { '/me': { get: { responses: 7 } } } }, 'struct'],
  ['no licence', { info: unlicensed }, 'info-license'],
  ['a duplicate operation id', { paths: { ...paths, '/me': me, '/you': me } }, 'operation-operationId-unique'],
  ['an undeclared path parameter', { paths: { '/me/{id}': me } }, 'path-parameters-defined'],
  ['a broken reference', { components: {} }, 'no-unresolved-refs'],
])('lets redocly find %s', async (_, damage, rule) => {
  expect(await lint({ ...sent(), ...damage })).toContain(rule)
})
