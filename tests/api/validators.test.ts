import SwaggerParser from '@apidevtools/swagger-parser'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { Validator } from '@seriousme/openapi-schema-validator'
import { expect, test } from 'vitest'
import { interfaceDocument } from '#lib/api/interface.ts'

/** The document as it is sent: fields that are undefined are not there. */
const sent = () => JSON.parse(JSON.stringify(interfaceDocument('https://payroll.stellar.test/api')))

test('@apidevtools/swagger-parser finds the document valid, and a damaged one not', async () => {
  await expect(SwaggerParser.validate(sent())).resolves.toMatchObject({ openapi: '3.1.0' })
  await expect(SwaggerParser.validate({ ...sent(), paths: { '/me': { get: { responses: 7 } } } })).rejects.toThrow()
})

test('@seriousme/openapi-schema-validator finds the document valid, and a damaged one not', async () => {
  expect(await new Validator().validate(sent())).toEqual({ valid: true })
  expect(await new Validator().validate({ ...sent(), info: {} })).toMatchObject({ valid: false })
})

test('redocly has nothing to say by its recommended rules, and something of a document without a licence', async () => {
  const config = await createConfig({ extends: ['recommended'] })
  const lint = (document: object) => lintFromString({ source: JSON.stringify(document), config })
  expect((await lint(sent())).map(({ ruleId, message }) => `${ruleId}: ${message}`)).toEqual([])
  const { license: _, ...info } = sent().info
  expect((await lint({ ...sent(), info })).map(({ ruleId }) => ruleId)).toEqual(['info-license'])
})
