import { z } from 'zod'
import { containsSecretSeed, isEmail } from '#lib/text/plain-text.ts'

/** A field that holds an email address. */
export const emailField = z
  .string('email must be a string')
  .refine(isEmail, { error: 'email must be an email address', abort: true })
  .refine((text) => !containsSecretSeed(text), 'email must not hold a secret seed')

/** The form in which two spellings of an address are one. */
export function foldEmail(email: string): string {
  return email.normalize('NFC').toLowerCase()
}
