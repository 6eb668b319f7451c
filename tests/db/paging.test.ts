import { expect, test } from 'vitest'
import { cursorOf, pageQuery } from '#lib/db/paging.ts'
import { describeIssue } from '#lib/http/parsing.ts'

const problem = (query: Record<string, string>) => pageQuery.safeParse(query).error?.issues.map(describeIssue)[0]
const encode = (text: string) => Buffer.from(text).toString('base64url')

test.each(['0', '501', '-1', '1e2', '2.5', 'many', '1000'])('rejects the limit %s', (limit) => {
  expect(problem({ limit })).toBe('limit must be 1 to 500')
})

test.each([
  ...['x', 'A'.repeat(200)],
  ...['now-1', '1', '1-', '-1', '1-1-1', '1e3-1', '0x1-1', "1-1'", "1'; drop table x-1"].map(encode),
  ...['9007199254740993-1', '9999999999999999-1', '8640000000000000-1', '253402300800000-1'].map(encode),
])('rejects the cursor %s', (cursor) => {
  expect(problem({ cursor })).toBe('cursor must come from the Link header of an earlier page')
})

test.each([
  { createdAt: new Date(0), sequence: 0 },
  { createdAt: new Date(1), sequence: 999_999_999_999_999 },
  { createdAt: new Date(Date.UTC(10_000, 0) - 1), sequence: 1 },
])('reads a position as it was written: %j', (position) => {
  expect(pageQuery.parse({ limit: '500', cursor: cursorOf(position) })).toEqual({ limit: 500, cursor: position })
})
