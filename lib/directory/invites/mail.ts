import { escapeHtml, type Message } from '#lib/text/mail.ts'

/**
 * A name as a mail may show it, or undefined where it could pass for something else: an encoded word (RFC 2047), which a
 * mail program would decode in the subject, or an address, which it would make a link. Marks that change the direction of
 * writing, and others that are not seen, are left out.
 */
function presentableName(name: string): string | undefined {
  const seen = name
    .replaceAll(/\p{Cf}/gu, '')
    .replaceAll(/[\s\p{Cc}]+/gu, ' ')
    .trim()
  const isEncoded = /=\?/.test(seen)
  const isAddress = /:\/\/|@|\bwww\.|[\p{L}\p{N}]\.\p{L}{2,}/iu.test(seen)
  return seen === '' || isEncoded || isAddress ? undefined : seen
}

/** The mail that carries an invite's link. People's own words are in it: in HTML they are escaped. */
export function writeInvite(invite: { to: string; name: string; company: string | undefined; link: string }): Message {
  const { to, link } = invite
  const company = presentableName(invite.company ?? '') ?? 'An organisation'
  const name = presentableName(invite.name)
  const greeting = name === undefined ? 'Hello,' : `Hello ${name},`
  const ask = `${company} invites you to be paid as a contractor.`
  const how = 'Open this link within 14 days, sign in and accept:'
  const otherwise = 'If you did not expect this, you can ignore it: nothing happens unless you accept.'
  return {
    to,
    subject: `${company} invites you to be paid as a contractor`,
    text: `${greeting}\n\n${ask} ${how}\n\n${link}\n\n${otherwise}\n`,
    html: `<!doctype html>
<html lang="en">
<body>
<p>${escapeHtml(greeting)}</p>
<p>${escapeHtml(ask)} ${how}</p>
<p><a href="${escapeHtml(link)}">${escapeHtml(link)}</a></p>
<p>${otherwise}</p>
</body>
</html>
`,
  }
}
