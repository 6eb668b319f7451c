import { composeMail, type Message } from '../mail.ts'

/**
 * Returns a name in the form that a mail shows, or undefined if a mail program could take it for something else: an
 * encoded word (RFC 2047), which it decodes in the subject, or an address, which it turns into a link. Removes
 * directional marks and other invisible characters.
 */
export function presentableName(name: string): string | undefined {
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
  return composeMail({
    to,
    subject: `${company} invites you to be paid as a contractor`,
    paragraphs: [
      greeting,
      `${company} invites you to be paid as a contractor. To accept, open this link within 14 days and sign in:`,
      link,
      'If you did not expect this invite, you can ignore it. Nothing happens unless you accept.',
    ],
  })
}
