import { StrKey } from '@stellar/stellar-sdk'
import { describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { contractorChanges, contractorRow, contractorRows, newContractor } from '#lib/directory/contractors/schema.ts'
import { describeIssue } from '#lib/http/parsing.ts'
import { accountOf } from '../support/directory.ts'

/** tests/text covers names and email addresses. */
const problem = (schema: z.ZodType, value: unknown) => schema.safeParse(value).error?.issues.map(describeIssue)[0]

const contract = StrKey.encodeContract(new Uint8Array(32).fill(9))
// A muxed address and a secret seed: each valid in its own way.
const muxed = 'MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVAAAAAAAAAAAAAJLK'
const seed = 'SAKICEVQLYWGSOJS4WW7HZJWAHZVEEBS527LHK5V4MLJALYKICQCJXMW'
/** The same address with its last character replaced, so that the checksum does not match. */
const changed = (address: string) => `${address.slice(0, -1)}${address.endsWith('A') ? 'B' : 'A'}`

const ADDRESS = 'address must be a ledger address (G… or C…)'
const AMOUNT = 'must be a positive decimal with at most 7 decimals'
const STATUS = 'status must be one of invited, onboarding, ready, inactive'
const rate = (amount: unknown, currency: unknown = 'USDC') => ({ rate: { amount, currency } })
const noAmounts = [
  ...['0', '-1', '1e3', '0.00000001', '0.0', '', ' 1', '1.', '.5', '+1', '01', '1,5'],
  ...['Infinity', 'NaN', '0x10', '1234567890123', '٣', seed],
]

describe.each([
  ['POST', newContractor],
  ['PATCH', contractorChanges],
])('%s', (_, schema) => {
  test.each<[string, object[]]>([
    ['address must be a string', [{ address: 7 }, { address: {} }]],
    [
      ADDRESS,
      [muxed, seed, accountOf(1).toLowerCase(), ` ${accountOf(1)}`, changed(accountOf(1)), changed(contract)].map(
        (address) => ({ address }),
      ),
    ],
    ['rate must be an object of amount and currency', [{ rate: '5' }, { rate: [] }]],
    ['rate.amount required', [{ rate: {} }]],
    ['rate.amount must be a string', [rate(5)]],
    ['rate.currency required', [{ rate: { amount: '5' } }]],
    ['rate.currency must be USDC', ['EUR', 'usdc', seed].map((currency) => rate('5', currency))],
    [`rate.amount ${AMOUNT}`, noAmounts.map((amount) => rate(amount))],
    ['name must be a string', [{ name: null }]],
    ['email must be an email address', [{ email: 'x' }]],
  ])('refuses: %s', (reason, values) => {
    expect(values.map((value) => problem(schema, { name: 'Ann', ...value }))).toEqual(values.map(() => reason))
  })

  test.each([accountOf(1), contract])('accepts the address %s', (address) => {
    expect(schema.parse({ name: 'Ann', address, ...rate('0.0000001') })).toMatchObject({
      address,
      ...rate('0.0000001'),
    })
  })
})

test.each([null, 'paid', seed])('rejects the status %s', (status) => {
  expect(problem(contractorChanges, { status })).toBe(STATUS)
})

test.each(['', null])('treats the empty CSV value %j as absent', (nothing) => {
  const absent = { name: 'A', email: undefined, address: undefined }
  expect(contractorRow.parse({ ...absent, email: nothing, address: nothing, amount: nothing })).toEqual(absent)
  expect(newContractor.parse({ ...absent, email: nothing, address: nothing, rate: nothing })).toEqual(absent)
})

describe('a row of an import', () => {
  test.each<[string, unknown[]]>([
    ['row must be an object', [null, 7, 'Ann', ['Ann']]],
    ['name required', [{}]],
    ['email must not contain a secret seed', [{ name: 'A', email: `${seed}@b.example` }]],
    [ADDRESS, [{ name: 'A', address: seed }]],
    [
      `amount ${AMOUNT}`,
      [0, -1, '0', '-1', '1e3', '1,5', ' 5', '0.12345678', true, {}, 1e-8, 1e12, 1e21, 1e300].map((amount) => ({
        name: 'A',
        amount,
      })),
    ],
  ])('is refused: %s', (reason, rows) => {
    expect(rows.map((row) => problem(contractorRow, row))).toEqual(rows.map(() => reason))
  })

  test.each([
    [1, '1'],
    [1e3, '1000'],
    [0.1, '0.1'],
    [1e-7, '0.0000001'],
    [100, '100'],
    [2500.75, '2500.75'],
    [999_999_999_999, '999999999999'],
    [0.1 + 0.2, '0.3'],
    [0.123_456_78, '0.1234568'],
    [1.000_000_04, '1'],
    ['1500.50', '1500.50'],
  ])('parses the amount %j as %s', (amount, expected) => {
    expect(contractorRow.parse({ name: 'A', amount }).amount).toBe(expected)
  })

  test('requires a list of rows', () => {
    expect(problem(contractorRows, {})).toBe('rows required')
    for (const rows of [{}, 'x', null]) expect(problem(contractorRows, { rows })).toBe('rows must be a list')
  })
})
