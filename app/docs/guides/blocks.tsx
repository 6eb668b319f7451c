import type { MarkedToken, Token, Tokens } from 'marked'
import { anchorOf, guideAddress } from '#lib/api/reference/guides.ts'
import { CodeBlock } from '../code-block.tsx'
import { sequence } from '../sequence.ts'

/** The content of a guide. The guides contain no HTML but comments, which are left out. */
export function Blocks({ tokens = [] }: { tokens: readonly Token[] | undefined }) {
  return sequence(tokens, (token) => <TokenView token={token as MarkedToken} />)
}

function TokenView({ token }: { token: MarkedToken }) {
  switch (token.type) {
    case 'heading':
      return <Heading {...token} />
    case 'paragraph':
      return (
        <p className="mt-3 max-w-prose leading-relaxed [overflow-wrap:anywhere]">
          <Blocks tokens={token.tokens} />
        </p>
      )
    case 'code':
      return <CodeBlock label="" text={token.text} />
    case 'list': {
      const List = token.ordered ? 'ol' : 'ul'
      return (
        <List className={`mt-3 space-y-1 pl-5 ${token.ordered ? 'list-decimal' : 'list-disc'}`}>
          {sequence(token.items, (item) => (
            <li className="[&>p]:mt-1">
              <Blocks tokens={item.tokens} />
            </li>
          ))}
        </List>
      )
    }
    case 'table':
      return <Table {...token} />
    case 'text':
      return token.tokens ? <Blocks tokens={token.tokens} /> : token.text
    case 'escape':
      return token.text
    case 'codespan':
      return <code className="text-[0.8125rem]">{token.text}</code>
    case 'strong':
      return (
        <strong className="font-semibold">
          <Blocks tokens={token.tokens} />
        </strong>
      )
    case 'em':
      return (
        <em>
          <Blocks tokens={token.tokens} />
        </em>
      )
    case 'link': {
      const address = guideAddress(token.href)
      if (address === undefined) return <Blocks tokens={token.tokens} />
      return (
        <a href={address} className="underline underline-offset-4 hover:text-accent">
          <Blocks tokens={token.tokens} />
        </a>
      )
    }
    default:
      return null
  }
}

function Heading({ depth, text, tokens }: Tokens.Heading) {
  if (depth === 1) {
    return (
      <h1 className="text-2xl font-semibold tracking-tight">
        <Blocks tokens={tokens} />
      </h1>
    )
  }
  const Title = depth === 2 ? 'h2' : 'h3'
  return (
    <Title id={anchorOf(text)} className={`mt-8 scroll-mt-4 font-semibold ${depth === 2 ? 'text-lg' : 'text-base'}`}>
      <Blocks tokens={tokens} />
    </Title>
  )
}

function Table({ header, rows }: Tokens.Table) {
  return (
    <table className="mt-3 w-full text-[0.8125rem]">
      <thead className="max-sm:sr-only">
        <tr>
          {sequence(header, ({ tokens }) =>
            // The corner cell of a table with row headings.
            tokens.length === 0 ? (
              <td />
            ) : (
              <th scope="col" className="py-1.5 pr-4 text-left font-medium">
                <Blocks tokens={tokens} />
              </th>
            ),
          )}
        </tr>
      </thead>
      <tbody className="divide-y divide-line border-y border-line">
        {sequence(rows, (row) => (
          <tr className="align-baseline max-sm:block max-sm:py-2">
            {sequence(row, ({ tokens }) => (
              <td className="py-1.5 pr-4 text-soft [overflow-wrap:anywhere] first:text-ink max-sm:block max-sm:py-0.5">
                <Blocks tokens={tokens} />
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}
