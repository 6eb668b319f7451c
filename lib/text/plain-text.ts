import { StrKey } from '@stellar/stellar-sdk'
import { z } from 'zod'
import { hasStrKeyChecksum } from './seed-checksum.ts'

/**
 * Whether `text` contains a Stellar secret seed, even inside a longer word or in lower case. A body full of near-seeds
 * must not block the process: the version byte allows only four letters in the second place, and the slow check of the
 * library runs only if the checksum matches.
 */
export function containsSecretSeed(text: string): boolean {
  for (const [, candidate = ''] of text.toUpperCase().matchAll(/(?=(S[A-D][A-Z2-7]{54}))/g)) {
    if (hasStrKeyChecksum(candidate) && StrKey.isValidEd25519SecretSeed(candidate)) return true
  }
  return false
}

/** Why a text is invalid. Zod issues carry it in `params.problem`. */
export type TextProblem = 'required' | 'too-long' | 'control-characters' | 'secret-seed'

function problemOf(text: string): TextProblem | undefined {
  // PostgreSQL cannot store NUL, a control character. A lone surrogate has no UTF-8 encoding.
  if (/\p{Cc}/u.test(text) || !text.isWellFormed()) return 'control-characters'
  if (containsSecretSeed(text)) return 'secret-seed'
  return text.trim() === '' ? 'required' : undefined
}

/** The message for each problem. None contains the text. */
export const textMessages = <const Name extends string, const Most extends number>(name: Name, most: Most) =>
  ({
    required: `${name} required`,
    'too-long': `${name} must have at most ${most} characters`,
    'control-characters': `${name} must not contain control characters`,
    'secret-seed': `${name} must not contain a secret seed`,
  }) as const satisfies Record<TextProblem, string>

/**
 * A field of plain text: any script, no control characters, no secret seed, at most `most` characters (code points).
 * @param name the name of the field in error messages
 */
export function plainText(name: string, most: number) {
  const messages = textMessages(name, most)
  return z
    .string({ error: absentOr(name, 'must be a string') })
    .refine((text) => text.length <= 2 * most && [...text].length <= most, {
      error: messages['too-long'],
      params: { problem: 'too-long' satisfies TextProblem },
      abort: true,
    })
    .superRefine((text, context) => {
      const problem = problemOf(text)
      if (problem) context.addIssue({ code: 'custom', message: messages[problem], params: { problem } })
    })
    .meta({ minLength: 1, maxLength: most })
}

/**
 * The message for a field: `<name> required` if it is absent, `<name> <problem>` if its value has the wrong type.
 */
export function absentOr(name: string, problem: string) {
  return (issue: { input?: unknown }): string => `${name} ${issue.input === undefined ? 'required' : problem}`
}

const ADDRESS = /^[^\s@\p{Cc}<>()[\]\\,;:"]+@[^\s@\p{Cc}<>()[\]\\,;:"]+$/u

/**
 * Whether `text` is a single email address of at most 254 characters, without a display name. Mail servers may apply
 * NFKC (the Kelvin sign U+212A becomes K), so an address that NFKC changes could be another mailbox's and is rejected.
 */
export function isEmail(text: string): boolean {
  return text.length <= 254 && text.isWellFormed() && text.normalize('NFKC') === text && ADDRESS.test(text)
}

export const emailField = z
  .string('email must be a string')
  .refine(isEmail, { error: 'email must be an email address', abort: true })
  .refine((text) => !containsSecretSeed(text), 'email must not contain a secret seed')

/** Normalizes an email for uniqueness checks. */
export function foldEmail(email: string): string {
  return email.toLowerCase()
}
