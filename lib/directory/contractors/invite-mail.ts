import { createTransport } from 'nodemailer'
import { Refusal } from '#lib/refusal/refusal.ts'
import { escapeHtml } from '#lib/text/html.ts'

export interface MailSettings {
  /** the SMTP server */
  url: string
  from: string
}

interface Message {
  to: string
  subject: string
  text: string
  html: string
}

const TIMEOUT_MS = 10_000

/**
 * @throws Refusal `mail-unavailable` if the server cannot be reached or wants the message later; `mail-refused` if it refuses the
 *   recipient or the message for good
 */
export async function sendMail(settings: MailSettings, message: Message): Promise<void> {
  const transport = createTransport({
    url: settings.url,
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    // The content of a message must never make the service open a file or a URL.
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  try {
    // The recipient is an object, so nothing in the address can become a list of recipients or a header.
    await transport.sendMail({ ...message, from: settings.from, to: { name: '', address: message.to } })
  } catch (error) {
    const cause = new Error(reasonOf(error))
    if (isPermanent(error)) throw new Refusal('mail-refused', undefined, { cause })
    throw new Refusal('mail-unavailable', undefined, { cause, retryAfter: 60 })
  } finally {
    transport.close()
  }
}

/** Whether the server has refused this recipient or message with a 5xx reply (RFC 5321 §4.2.1), and not the service's credentials. */
function isPermanent(error: unknown): boolean {
  const { command, responseCode } = error as Record<string, unknown>
  return Number(responseCode) >= 500 && (command === 'RCPT TO' || command === 'DATA')
}

/**
 * Reduces a mail error to its codes for the log: a server's message may quote the recipient, and a filter's may quote
 * the link.
 */
function reasonOf(error: unknown): string {
  const { code, originalCode, command, responseCode } = error as Record<string, unknown>
  return [code, originalCode, command, responseCode].filter((part) => part !== undefined).join(' ')
}

/**
 * Returns a name in the form that a mail shows, or undefined if a mail program could take it for something else: an
 * encoded word (RFC 2047), which it decodes in the subject, or an address, which it turns into a link. Removes
 * directional marks and other invisible characters.
 */
function presentableName(name: string): string | undefined {
  const visible = name
    .replaceAll(/\p{Cf}/gu, '')
    .replaceAll(/[\s\p{Cc}]+/gu, ' ')
    .trim()
  const isEncoded = /=\?/.test(visible)
  const isAddress = /:\/\/|@|\bwww\.|[\p{L}\p{N}]\.\p{L}{2,}/iu.test(visible)
  return visible === '' || isEncoded || isAddress ? undefined : visible
}

/** Composes the mail with the link of an invite. Users choose the names, so the HTML escapes them. */
export function composeInvite(invite: {
  to: string
  name: string
  company: string | undefined
  link: string
}): Message {
  const { to, link } = invite
  const company = presentableName(invite.company ?? '') ?? 'An organisation'
  const name = presentableName(invite.name)
  const greeting = name === undefined ? 'Hello,' : `Hello ${name},`
  const request = `${company} invites you to be paid as a contractor.`
  const steps = 'To accept, open this link within 14 days and sign in:'
  const otherwise = 'If you did not expect this invite, you can ignore it. Nothing happens unless you accept.'
  return {
    to,
    subject: `${company} invites you to be paid as a contractor`,
    text: `${greeting}\n\n${request} ${steps}\n\n${link}\n\n${otherwise}\n`,
    html: `<!doctype html>
<html lang="en">
<body>
<p>${escapeHtml(greeting)}</p>
<p>${escapeHtml(request)} ${steps}</p>
<p><a href="${escapeHtml(link)}">${escapeHtml(link)}</a></p>
<p>${otherwise}</p>
</body>
</html>
`,
  }
}
