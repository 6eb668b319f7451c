import { createTransport } from 'nodemailer'
import { Refusal } from '#lib/refusal/refusal.ts'
import { escapeHtml } from '#lib/text/html.ts'

export interface MailSettings {
  /** the SMTP server */
  url: string
  from: string
}

export interface Message {
  to: string
  subject: string
  text: string
  html: string
  /** the address that stops such mails with one POST (RFC 8058) */
  unsubscribe?: string
}

const TIMEOUT_MS = 10_000

/**
 * @throws Refusal `mail-unavailable` if the server cannot be reached or wants the message later; `mail-refused` if it refuses the
 *   recipient or the message for good
 */
export async function sendMail(settings: MailSettings, { unsubscribe, ...message }: Message): Promise<void> {
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
    await transport.sendMail({
      ...message,
      ...{ from: settings.from, to: { name: '', address: message.to } },
      ...(unsubscribe !== undefined && {
        headers: { 'List-Unsubscribe': `<${unsubscribe}>`, 'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click' },
      }),
    })
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

/** A message of paragraphs, as text and as HTML, where a paragraph that is a URL becomes a link. */
export function composeMail({
  to,
  subject,
  paragraphs,
}: {
  to: string
  subject: string
  paragraphs: readonly string[]
}): Message {
  const inHtml = (paragraph: string) => {
    const escaped = escapeHtml(paragraph)
    return `<p>${/^https?:\/\/\S+$/.test(paragraph) ? `<a href="${escaped}">${escaped}</a>` : escaped}</p>`
  }
  return {
    ...{ to, subject, text: `${paragraphs.join('\n\n')}\n` },
    html: `<!doctype html>\n<html lang="en">\n<body>\n${paragraphs.map(inHtml).join('\n')}\n</body>\n</html>\n`,
  }
}
