import { createTransport } from 'nodemailer'
import { Refusal } from '#lib/refusal/refusal.ts'

/** The mail server, and the sender's address. */
export interface MailSettings {
  url: string
  from: string
}

/** One message to one person, the same in text and in HTML. */
interface Message {
  to: string
  subject: string
  text: string
  html: string
}

const TIMEOUT_MS = 10_000

/**
 * Hands a message to the mail server.
 * @throws Refusal `mail-unavailable` when the server cannot be reached or does not take it
 */
export async function sendMail(settings: MailSettings, message: Message): Promise<void> {
  const transport = createTransport({
    url: settings.url,
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    // Nothing that a message holds may make the service open a file or an address.
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  try {
    // The address is passed as an object, so that nothing in it can become a list of recipients or a header.
    await transport.sendMail({ ...message, from: settings.from, to: { name: '', address: message.to } })
  } catch (error) {
    const cause = new Error(reasonOf(error))
    throw new Refusal('mail-unavailable', 'the mail could not be sent', { cause, retryAfter: 60 })
  } finally {
    transport.close()
  }
}

/**
 * Why a mail could not be sent, by codes alone, since this is logged: the text of a mail server may repeat the
 * recipient, and that of a filter the link.
 */
function reasonOf(error: unknown): string {
  const { code, originalCode, command, responseCode } = error as Record<string, unknown>
  return [code, originalCode, command, responseCode].filter((part) => part !== undefined).join(' ')
}

/**
 * A name as a mail may show it, or undefined where it could pass for something else: an encoded word (RFC 2047), which
 * a mail program would decode in the subject, or an address, which it would make a link. Marks that change the
 * direction of writing, and others that are not seen, are left out.
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

/** The mail that carries an invite's link. Names come from users, so they are escaped in the HTML. */
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

const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

/** Escapes text for HTML, attributes included. */
function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? character)
}
