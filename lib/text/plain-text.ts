import { StrKey } from '@stellar/stellar-sdk'
import { z } from 'zod'

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

/** The value of each base32 character, by character code. */
const VALUES = new Uint8Array(128)
for (const [value, character] of [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'].entries()) {
  VALUES[character.charCodeAt(0)] = value
}

/** The bits before a strkey's checksum: the version byte and 32 bytes of payload. */
const PAYLOAD_BITS = 33 * 8

/**
 * Whether 56 base32 characters end in a valid checksum (SEP-23: CRC-16/XMODEM, low byte first). The library's check of a
 * strkey is many times slower, and a body can contain a quarter of a million candidates.
 */
function hasStrKeyChecksum(strkey: string): boolean {
  let crc = 0
  let sum = 0
  let held = 0
  let bits = 0
  for (let place = 0; place < strkey.length; place += 1) {
    held = ((held << 5) | (VALUES[strkey.charCodeAt(place)] ?? 0)) & 0xfff
    bits += 5
    const pending = bits % 8
    if (pending >= 5) continue
    const byte = (held >> pending) & 0xff
    if (bits - pending > PAYLOAD_BITS) sum = (sum << 8) | byte
    else crc = appendByte(crc, byte)
  }
  return sum === (((crc & 0xff) << 8) | (crc >> 8))
}

function appendByte(before: number, byte: number): number {
  let crc = before ^ (byte << 8)
  for (let bit = 0; bit < 8; bit += 1) crc = (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff
  return crc
}

/**
 * Invisible characters, by which two texts look alike: format characters such as zero-width spaces and directional
 * marks, fillers, variation selectors, tags, private use, the braille blank and the replacement character.
 */
const INVISIBLE = /[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Co}\u2800\ufffd]/u

/** Whether a text has invisible characters. */
export const hasInvisible = (text: string): boolean => INVISIBLE.test(text)

/**
 * The invisible characters that names need: zero-width joiners between the letters of Persian and Indic names and within emoji, and
 * after a virama; the selector of a coloured emoji, and those of the variants of a Han character.
 */
const JOINERS = new RegExp(
  [
    /(?<=[\p{L}\p{M}\p{Emoji}]|\ufe0f)[\u200c\u200d](?=[\p{L}\p{M}\p{Emoji}])/u,
    /(?<=[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca])[\u200c\u200d]/u,
    /(?<=\p{Emoji})\ufe0f/u,
    /(?<=\p{Script=Han})[\u{e0100}-\u{e01ef}]/u,
  ]
    .map(({ source }) => source)
    .join('|'),
  'gu',
)

/** Why a text is invalid. Zod issues carry it in `params.problem`. */
type TextProblem = 'required' | 'too-long' | 'control-characters' | 'invisible-characters' | 'secret-seed'

/** Why a value is not a text of at most `most` characters (code points), or undefined. */
export function problemOf(text: unknown, most: number): TextProblem | undefined {
  if (typeof text !== 'string') return 'required'
  if (text.length > 2 * most || [...text].length > most) return 'too-long'
  // PostgreSQL cannot store NUL, a control character. A lone surrogate has no UTF-8 encoding.
  if (/\p{Cc}/u.test(text) || !text.isWellFormed()) return 'control-characters'
  if (containsSecretSeed(text)) return 'secret-seed'
  const visible = text.replaceAll(JOINERS, '')
  if (hasInvisible(visible)) return 'invisible-characters'
  return visible.trim() === '' ? 'required' : undefined
}

/** The message for each problem, without the name of the field. None contains the text. */
export const textMessages = <const Most extends number>(most: Most) =>
  ({
    required: 'required',
    'too-long': `must have at most ${most} characters`,
    'control-characters': 'must not contain control characters',
    'invisible-characters': 'must not contain invisible characters',
    'secret-seed': 'must not contain a secret seed',
  }) as const satisfies Record<TextProblem, string>

/**
 * A field of plain text: any script, no control or invisible characters, no secret seed, at most `most` characters (code points).
 * It is normalized (NFC), so that a name is found in each of its spellings.
 */
export function plainText(most: number) {
  const messages = textMessages(most)
  return z
    .string({ error: absentOr('must be a string') })
    .superRefine((text, context) => {
      const problem = problemOf(text, most)
      if (problem)
        context.addIssue({ code: 'custom', message: messages[problem], params: { problem }, continue: false })
    })
    .overwrite((text) => text.normalize('NFC'))
    .meta({ minLength: 1, maxLength: most })
}

/** A body whose field `name` is a text that its handler understands, such as a token. */
export function bodyWith<const Name extends string>(name: Name, description: string) {
  const field = z.string('required').min(1, 'required').meta({ description })
  return z.object({ [name]: field } as Record<Name, typeof field>, `${name} required`)
}

/** The message for a field: `required` if it is absent, `problem` if its value has the wrong type. */
export function absentOr(problem: string) {
  return (issue: { input?: unknown }): string => (issue.input === undefined ? 'required' : problem)
}
