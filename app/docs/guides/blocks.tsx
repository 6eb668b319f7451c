import { guideAddress } from '#lib/api/reference/guides.ts'
import type { Block, Inline } from '#lib/text/markdown.ts'
import { CodeBlock } from '../code-block.tsx'
import { sequence } from '../sequence.ts'

/** The content of a guide. */
export function Blocks({ blocks }: { blocks: readonly Block[] }) {
  return sequence(blocks, (block) => <BlockView block={block} />)
}

function BlockView({ block }: { block: Block }) {
  switch (block.type) {
    case 'heading':
      return <Heading {...block} />
    case 'paragraph':
      return (
        <p className="mt-3 max-w-prose leading-relaxed [overflow-wrap:anywhere]">
          <Inlines content={block.content} />
        </p>
      )
    case 'code':
      return <CodeBlock label="" text={block.text} />
    case 'list': {
      const List = block.isOrdered ? 'ol' : 'ul'
      return (
        <List className={`mt-3 space-y-1 pl-5 ${block.isOrdered ? 'list-decimal' : 'list-disc'}`}>
          {sequence(block.items, (item) => (
            <li className="[&>p]:mt-1">
              <Blocks blocks={item} />
            </li>
          ))}
        </List>
      )
    }
    case 'table':
      return <Table {...block} />
  }
}

function Heading({ level, id, content }: Extract<Block, { type: 'heading' }>) {
  if (level === 1) {
    return (
      <h1 className="text-2xl font-semibold tracking-tight">
        <Inlines content={content} />
      </h1>
    )
  }
  const Title = level === 2 ? 'h2' : 'h3'
  return (
    <Title id={id} className={`mt-8 scroll-mt-4 font-semibold ${level === 2 ? 'text-lg' : 'text-base'}`}>
      <Inlines content={content} />
    </Title>
  )
}

function Table({ head, rows }: Extract<Block, { type: 'table' }>) {
  return (
    <table className="mt-3 w-full text-[0.8125rem]">
      <thead className="max-sm:sr-only">
        <tr>
          {sequence(head, (cell) =>
            // The corner of a table that names its rows, too.
            cell.length === 0 ? (
              <td />
            ) : (
              <th scope="col" className="py-1.5 pr-4 text-left font-medium">
                <Inlines content={cell} />
              </th>
            ),
          )}
        </tr>
      </thead>
      <tbody className="divide-y divide-line border-y border-line">
        {sequence(rows, (row) => (
          <tr className="align-baseline max-sm:block max-sm:py-2">
            {sequence(row, (cell) => (
              <td className="py-1.5 pr-4 text-soft [overflow-wrap:anywhere] first:text-ink max-sm:block max-sm:py-0.5">
                <Inlines content={cell} />
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Inlines({ content }: { content: readonly Inline[] }) {
  return sequence(content, (inline) => <InlineView inline={inline} />)
}

function InlineView({ inline }: { inline: Inline }) {
  switch (inline.type) {
    case 'text':
      return inline.text
    case 'code':
      return <code className="text-[0.8125rem]">{inline.text}</code>
    case 'strong':
      return <strong className="font-semibold">{inline.text}</strong>
    case 'emphasis':
      return <em>{inline.text}</em>
    case 'link': {
      const address = guideAddress(inline.href)
      if (address === undefined) return inline.text
      return (
        <a href={address} className="underline underline-offset-4 hover:text-accent">
          {inline.text}
        </a>
      )
    }
  }
}
