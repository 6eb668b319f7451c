import { escapeHtml, type Message } from '#lib/text/mail.ts'

/** The mail that carries an invite's link. People's own words are in it: in HTML they are escaped. */
export function writeInvite(invite: { to: string; name: string; company: string; link: string }): Message {
  const { to, name, company, link } = invite
  const ask = `${company} invites you to be paid as a contractor.`
  const how = 'Open this link within 14 days, sign in and accept:'
  const otherwise = 'If you did not expect this, you can ignore it: nothing happens unless you accept.'
  return {
    to,
    subject: `${company} invites you to be paid as a contractor`,
    text: `Hello ${name},\n\n${ask} ${how}\n\n${link}\n\n${otherwise}\n`,
    html: `<!doctype html>
<html lang="en">
<body>
<p>Hello ${escapeHtml(name)},</p>
<p>${escapeHtml(ask)} ${how}</p>
<p><a href="${escapeHtml(link)}">${escapeHtml(link)}</a></p>
<p>${otherwise}</p>
</body>
</html>
`,
  }
}
