import { expect, test } from 'vitest'
import { csvStream } from '#lib/dashboard/csv.ts'
import { csvField, csvRecord } from '#lib/text/csv.ts'

test.each([
  ['=1+1', "'=1+1"],
  ['+1', "'+1"],
  ['-1', "'-1"],
  ['@SUM(A1)', "'@SUM(A1)"],
  ['\t=1', `"'\t'=1"`],
  [' =1', "' =1"],
  ['\r\n=1', '"\'\r\n=1"'],
  ['＝1+1', "'＝1+1"],
  ['＋1', "'＋1"],
  ['－1', "'－1"],
  ['＠SUM(A1)', "'＠SUM(A1)"],
  ['\u200b=1', "'\u200b=1"],
  ['\ufeff＝1', "'\ufeff＝1"],
  ['\u00ad\u2060\u200d@SUM(A1)', "'\u00ad\u2060\u200d@SUM(A1)"],
  ['\u200bplain', "'\u200bplain"],
  ['a;=1+1', `"a;'=1+1"`],
  ['a; @SUM(A1)', `"a;' @SUM(A1)"`],
  ['a\t-1', `"a\t'-1"`],
  ['=HYPERLINK("x","y")', '"\'=HYPERLINK(""x"",""y"")"'],
])('writes %j so that no spreadsheet reads it as a formula', (value, field) => {
  expect(csvField(value)).toBe(field)
})

test.each([
  ['plain', 'plain'],
  ['a, b', '"a, b"'],
  ['say "so"', '"say ""so"""'],
  [-7, '-7'],
  [null, ''],
  [new Date('2026-11-20T12:30:00Z'), '2026-11-20T12:30:00.000Z'],
])('writes %j as %j', (value, field) => {
  expect(csvField(value)).toBe(field)
})

test('writes a header and a record for each row', async () => {
  async function* parts() {
    yield [['a', 1]]
    yield [['b', 2]]
  }
  const file = Buffer.from(await new Response(csvStream(['name', 'count'], parts())).arrayBuffer()).toString('utf8')
  // Spreadsheets recognize UTF-8 by the byte-order mark.
  expect(file).toBe('\ufeff' + 'name,count\r\na,1\r\nb,2\r\n')
  expect(csvRecord([])).toBe('\r\n')
})
