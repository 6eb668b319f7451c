import { FIELDS, REFUSALS } from '#lib/refusal/refusal.ts'

/** The page of all error codes, made of the table that the service answers from. */
export function errorCodesPage(): string {
  const fields = FIELDS.map((field) => `\`${field}\``).join(', ')
  const sections = Object.entries(REFUSALS).map(([status, codes]) => {
    const rows = Object.entries(codes).map(([code, message]) => `| \`${code}\` | ${message.replace('<time>', '…')} |`)
    return [`## ${status}`, '', '| code | message |', '|---|---|', ...rows].join('\n')
  })
  return `# Error codes

Made by \`npm run docs\` from the table in lib/refusal/refusal.ts.

Programs compare codes; messages are for people, and some add details. An absent field of a body or query is
\`<field>-required\`, one that cannot be used \`<field>-invalid\`, both with status 400. The fields:
${wrap(`${fields}.`)}

\`POST /transfer\` prefixes the messages of status 422 with \`sponsor refused: \`. It answers every failure with status 500 and
the message \`transfer failed\`, also for the codes listed under 503.

${sections.join('\n\n')}
`
}

/** The text in lines of at most 120 characters. */
const wrap = (text: string): string => text.replaceAll(/(.{1,120})(?: |$)/g, '$1\n').trimEnd()
