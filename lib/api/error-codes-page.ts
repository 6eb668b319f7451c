import { FIELDS, REFUSALS } from '#lib/refusal/refusal.ts'

/** The page of all error codes, made of the table that the service answers from. */
export function errorCodesPage(): string {
  const fields = FIELDS.map((field) => `\`${field}\``).join(', ')
  const sections = Object.entries(REFUSALS).map(([status, codes]) => {
    const rows = Object.entries(codes).map(([code, meaning]) => `| \`${code}\` | ${meaning} |`)
    return [`## ${status}`, '', '| code | meaning |', '|---|---|', ...rows].join('\n')
  })
  return `# Error codes

Made by \`npm run docs\` from the table in lib/refusal/refusal.ts.

A field of a body or a query that is missing is \`<field>-required\`, one that cannot be used \`<field>-invalid\`, both
with status 400. The fields:
${wrap(`${fields}.`)}

\`POST /transfer\` answers 500 with a code that stands under 503 here.

${sections.join('\n\n')}
`
}

/** The text in lines of at most 120 characters. */
const wrap = (text: string): string => text.replaceAll(/(.{1,120})(?: |$)/g, '$1\n').trimEnd()
