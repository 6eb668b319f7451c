/** A part of a line. */
export type Inline = { type: 'text' | 'code' | 'strong' | 'emphasis'; text: string } | LinkInline

interface LinkInline {
  type: 'link'
  text: string
  href: string
}

export type Block =
  | { type: 'heading'; level: number; id: string; content: Inline[] }
  | { type: 'paragraph'; content: Inline[] }
  | { type: 'code'; text: string }
  | { type: 'list'; isOrdered: boolean; items: Block[][] }
  | { type: 'table'; head: Inline[][]; rows: Inline[][][] }

const FENCE = /^```/
const HEADING = /^(#{1,4}) (.*)/
const ITEM = /^(- |\d+\. )/
const ROW = /^\|.*\|$/

/** Parses the Markdown that the guides in `docs` use: a subset of CommonMark, with the tables of GitHub. */
export function parseMarkdown(text: string): Block[] {
  return parseBlocks(text.replaceAll(/<!--.*?-->\n?/gs, '').split('\n'))
}

function parseBlocks(lines: readonly string[]): Block[] {
  const blocks: Block[] = []
  for (let at = 0; at < lines.length; ) {
    const line = lines[at] ?? ''
    /** The lines from here on, as long as `belongs`. */
    const take = (belongs: (line: string, count: number) => boolean) => {
      const end = lines.findIndex((next, index) => index > at && !belongs(next, index - at))
      const taken = lines.slice(at, end === -1 ? lines.length : end)
      at += taken.length
      return taken
    }
    const [, marks = '', title = ''] = HEADING.exec(line) ?? []
    if (line.trim() === '') at += 1
    else if (FENCE.test(line)) {
      const code = take((next) => !FENCE.test(next))
      at += 1
      blocks.push({ type: 'code', text: code.slice(1).join('\n') })
    } else if (marks !== '') {
      at += 1
      blocks.push({ type: 'heading', level: marks.length, id: anchorOf(title), content: parseInlines(title) })
    } else if (ROW.test(line)) {
      const [head = [], , ...rows] = take((next) => ROW.test(next)).map(cellsOf)
      blocks.push({ type: 'table', head, rows })
    } else if (ITEM.test(line)) {
      const all = take((next) => next.trim() === '' || next.startsWith(' ') || ITEM.test(next))
      blocks.push({ type: 'list', isOrdered: !line.startsWith('- '), items: itemsOf(all).map(parseBlocks) })
    } else {
      const all = take((next) => next.trim() !== '' && ![FENCE, HEADING, ITEM, ROW].some((other) => other.test(next)))
      blocks.push({ type: 'paragraph', content: parseInlines(all.join(' ')) })
    }
  }
  return blocks
}

/** The lines of each item of a list, without the item's mark and indentation. */
function itemsOf(lines: readonly string[]): string[][] {
  const items: string[][] = []
  for (const line of lines) {
    const [mark] = ITEM.exec(line) ?? []
    if (mark) items.push([line.slice(mark.length)])
    else items.at(-1)?.push(line.replace(/^ {1,3}/, ''))
  }
  return items
}

/** The cells of a row. A bar in a cell is escaped. */
const cellsOf = (row: string): Inline[][] =>
  row
    .slice(1, -1)
    .split(/(?<!\\)\|/)
    .map((cell) => parseInlines(cell.trim().replaceAll('\\|', '|')))

const INLINE = /`([^`]+)`|\[((?:[^\]`]|`[^`]*`)+)\]\(([^)]+)\)|\*\*([^*]+)\*\*|(?<![\w*])\*([^*\s][^*]*)\*/g

export function parseInlines(text: string): Inline[] {
  const inlines: Inline[] = []
  let end = 0
  for (const match of text.matchAll(INLINE)) {
    const [whole, code, label, href, strong, emphasis] = match
    if (match.index > end) inlines.push({ type: 'text', text: text.slice(end, match.index) })
    if (code !== undefined) inlines.push({ type: 'code', text: code })
    else if (label !== undefined) inlines.push({ type: 'link', text: label.replaceAll('`', ''), href: href ?? '' })
    else if (strong !== undefined) inlines.push({ type: 'strong', text: strong.replaceAll('`', '') })
    else inlines.push({ type: 'emphasis', text: (emphasis ?? '').replaceAll('`', '') })
    end = match.index + whole.length
  }
  return end < text.length ? [...inlines, { type: 'text', text: text.slice(end) }] : inlines
}

/** The anchor that GitHub gives a heading. */
const anchorOf = (title: string): string =>
  title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
