import { domainToASCII } from 'node:url'
import { z } from 'zod'
import { containsSecretSeed, hasInvisible } from './plain-text.ts'

const ADDRESS = /^([^\s@\p{Cc}<>()[\]\\,;:"]+)@([^\s@\p{Cc}<>()[\]\\,;:"]+)$/u

/** A host name: labels of letters, digits and hyphens (RFC 1123). The last is not a number, which would be an IP address. */
const HOST = /^(?:[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?\.)*(?!\d+$)[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?$/

/**
 * The local part and the domain of an email in its ASCII form (IDNA, as the mailer sends it); undefined if the domain has none.
 */
function partsOf(text: string): { local: string; domain: string } | undefined {
  const [, local, domain] = ADDRESS.exec(text) ?? []
  if (local === undefined || domain === undefined || /[/?#%]/.test(domain)) return undefined
  const ascii = domainToASCII(domain)
  return HOST.test(ascii) ? { local, domain: ascii } : undefined
}

/**
 * Whether `text` is a single email address of at most 254 characters, without a display name. Mail servers may apply
 * NFKC (the Kelvin sign U+212A becomes K), so an address that NFKC changes could be another mailbox's and is rejected, as is
 * one with invisible characters: it would look like another one.
 */
export function isEmail(text: string): boolean {
  if (text.length > 254 || !text.isWellFormed() || text.normalize('NFKC') !== text || hasInvisible(text)) return false
  const parts = partsOf(text)
  return parts !== undefined && !parts.local.startsWith('.') && !parts.local.endsWith('.')
}

export const emailField = z
  .string('must be a string')
  .refine(isEmail, { error: 'must be an email address', abort: true })
  .refine((text) => !containsSecretSeed(text), 'must not contain a secret seed')

/** Normalizes an email for comparison: without case, and its domain in ASCII. */
export function foldEmail(email: string): string {
  const parts = partsOf(email)
  return parts ? `${parts.local.toLowerCase()}@${parts.domain}` : email.toLowerCase()
}

/** Normalizes a part of an email like the whole: a domain after its `@` is in ASCII. */
export function foldEmailPart(part: string): string {
  return part.startsWith('@') ? foldEmail(`x${part}`).slice(1) : foldEmail(part)
}
