import { expect, test } from 'vitest'
import { parseInlines, parseMarkdown } from '#lib/text/markdown.ts'

test('parses headings, paragraphs, code and comments', () => {
  expect(parseMarkdown('# A `b` title\n\none\ntwo\n\n<!-- no -->\n```sh\n# not a title\n\nx\n```\n')).toEqual([
    {
      type: 'heading',
      level: 1,
      id: 'a-b-title',
      content: [
        { type: 'text', text: 'A ' },
        { type: 'code', text: 'b' },
        { type: 'text', text: ' title' },
      ],
    },
    { type: 'paragraph', content: [{ type: 'text', text: 'one two' }] },
    { type: 'code', text: '# not a title\n\nx' },
  ])
})

test('parses a list whose items have further blocks', () => {
  const [list] = parseMarkdown('1. one\n   more\n\n   ```json\n   { "a":\n     1 }\n   ```\n\n2. two\n')
  expect(list).toMatchObject({
    type: 'list',
    isOrdered: true,
    items: [
      [
        { type: 'paragraph', content: [{ text: 'one more' }] },
        { type: 'code', text: '{ "a":\n  1 }' },
      ],
      [{ type: 'paragraph', content: [{ text: 'two' }] }],
    ],
  })
})

test('parses a table with an escaped bar', () => {
  const cell = (text: string) => [{ type: 'text', text }]
  expect(parseMarkdown('| a | b |\n| --- | --- |\n| 1 \\| 2 | x |\n')).toEqual([
    { type: 'table', head: [cell('a'), cell('b')], rows: [[cell('1 | 2'), cell('x')]] },
  ])
})

test('parses code, links and emphasis within a line, and leaves a lone asterisk', () => {
  expect(parseInlines('see [the `x`](y.md#z), **now** *or* 2 * 3')).toEqual([
    { type: 'text', text: 'see ' },
    { type: 'link', text: 'the x', href: 'y.md#z' },
    { type: 'text', text: ', ' },
    { type: 'strong', text: 'now' },
    { type: 'text', text: ' ' },
    { type: 'emphasis', text: 'or' },
    { type: 'text', text: ' 2 * 3' },
  ])
})
