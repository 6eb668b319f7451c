import { z } from 'zod'
import { containsSecretSeed } from '#lib/text/plain-text.ts'

const ADDRESS = /^[^\s@\p{Cc}<>()[\]\\,;:"]+@[^\s@\p{Cc}<>()[\]\\,;:"]+$/u

/** Whether `text` is one address of electronic mail and nothing else: no display name, no list, at most 254 long. */
export function isEmail(text: string): boolean {
  return text.length <= 254 && text.isWellFormed() && ADDRESS.test(text)
}

/** A field that holds an email address. */
export const emailField = z
  .string('email must be a string')
  .refine(isEmail, { error: 'email must be an email address', abort: true })
  .refine((text) => !containsSecretSeed(text), 'email must not hold a secret seed')

/** The form in which two spellings of an address are one. */
export function foldEmail(email: string): string {
  return email.normalize('NFC').toLowerCase()
}
