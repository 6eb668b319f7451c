import { afterEach, expect, test, vi } from 'vitest'
import { ConfigurationError, readEnvironment } from '#lib/config/environment.ts'
import { findMissingVariables } from '#lib/server/missing-variables.ts'
import { provideService, type Service } from '#lib/server/services.ts'
import { composeSettings } from '#lib/server/settings.ts'

afterEach(() => vi.unstubAllEnvs())

const PREVIEW = {
  VERCEL: '1',
  VERCEL_URL: 'pay-git-x.vercel.app',
  VERCEL_ENV: 'preview',
  POSTGRES_URL: 'postgres://h/d',
}

test('names the variables that a preview with only a database needs to start, and how to get them', async () => {
  let failure: unknown
  try {
    readEnvironment(PREVIEW)
  } catch (error) {
    failure = error
  }
  expect(failure).toBeInstanceOf(ConfigurationError)
  const starting = Promise.reject(failure)
  starting.catch(() => undefined)
  provideService(starting)
  const { problem, missing } = await findMissingVariables()
  expect(problem).toBe('SESSION_SECRET: is required on Vercel')
  expect(missing.map(({ variable }) => variable)).toEqual([
    'SESSION_SECRET',
    'OPERATOR_PASSWORD',
    'CONFIDENTIAL_TOKEN',
    'SPONSOR_SEED',
  ])
  expect(missing.every(({ remedy }) => /openssl|Set|npm run setup/.test(remedy))).toBe(true)
})

test('requires DATABASE_URL on Vercel', async () => {
  const starting = Promise.reject(new ConfigurationError('DATABASE_URL', 'is needed'))
  starting.catch(() => undefined)
  provideService(starting)
  const names = async () => (await findMissingVariables()).missing.map(({ variable }) => variable)
  vi.stubEnv('DATABASE_URL', '')
  vi.stubEnv('POSTGRES_URL', '')
  expect(await names()).not.toContain('DATABASE_URL')
  vi.stubEnv('VERCEL', '1')
  expect((await names())[0]).toBe('DATABASE_URL')
  vi.stubEnv('POSTGRES_URL', 'postgres://h/d')
  expect(await names()).not.toContain('DATABASE_URL')
})

test('names the variables that a running service needs for payroll', async () => {
  const settings = composeSettings(
    readEnvironment({ ...PREVIEW, SESSION_SECRET: 'a secret of the tests, 32 bytes and more' }),
  )
  provideService(Promise.resolve({ settings } as Service))
  const { problem, missing } = await findMissingVariables()
  expect(problem).toBeUndefined()
  expect(missing.map(({ variable }) => variable)).toEqual(['OPERATOR_PASSWORD', 'CONFIDENTIAL_TOKEN', 'SPONSOR_SEED'])
})

test('rethrows errors that are not about configuration', async () => {
  const starting = Promise.reject(new Error('a fault'))
  starting.catch(() => undefined)
  provideService(starting)
  await expect(findMissingVariables()).rejects.toThrow('a fault')
})
