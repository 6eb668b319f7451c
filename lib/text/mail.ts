import { createTransport } from 'nodemailer'
import { Refusal } from '#lib/http/refusal.ts'

/** Where mail goes out, and from whom. */
export interface MailSettings {
  url: string
  from: string
}

/** One message to one person, the same in text and in HTML. */
export interface Message {
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
    // The address goes as one, so that nothing in it can become a list of recipients or a header.
    await transport.sendMail({ ...message, from: settings.from, to: { name: '', address: message.to } })
  } catch (error) {
    const cause = new Error(reasonOf(error))
    throw new Refusal('mail-unavailable', 'the mail could not be sent', { cause, retryAfter: 60 })
  } finally {
    transport.close()
  }
}

/**
 * Why a mail could not be sent, by codes alone: in their own words servers repeat the recipient, and filters the link,
 * and this goes into the log.
 */
function reasonOf(error: unknown): string {
  const { code, originalCode, command, responseCode } = error as Record<string, unknown>
  return [code, originalCode, command, responseCode].filter((part) => part !== undefined).join(' ')
}

const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

/** Text as it may stand in HTML, in an attribute too. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? character)
}
