import { isIP } from 'node:net'
import { StrKey } from '@stellar/stellar-sdk'
import { z } from 'zod'
import { parseUnits } from '#lib/text/money.ts'
import { hasInvisible } from '#lib/text/plain-text.ts'

/** Text on one line, without invisible characters: such a secret matches none that is typed. */
export const text = z.string().refine((value) => !/\p{Cc}/u.test(value) && !hasInvisible(value), {
  error: 'contains a control character or an invisible one',
  abort: true,
})
export const seed = text.refine((value) => StrKey.isValidEd25519SecretSeed(value), 'not a Stellar secret seed (S…)')
export const address = text.refine(
  (value) => StrKey.isValidContract(value) || StrKey.isValidEd25519PublicKey(value),
  'not an address (G… or C…)',
)
export const contract = text.refine((value) => StrKey.isValidContract(value), 'not a contract address (C…)')
export const count = (least: number, most: number) =>
  text
    .regex(/^\d{1,15}$/, 'not a whole number')
    .transform(Number)
    .refine((value) => value >= least && value <= most, `not between ${least} and ${most}`)
export const stroops = text.regex(/^\d{1,18}$/, 'not a whole number of stroops').transform(BigInt)
export const amount = text
  .regex(/^\d{1,12}(\.\d{1,7})?$/, 'not a decimal of at most seven places')
  .transform(parseUnits)
  .refine((units) => units > 0n, 'not greater than zero')
export const list = text
  .transform((value) =>
    value
      .split(',')
      .map((item) => item.trim())
      .filter(Boolean),
  )
  .refine((items) => items.length > 0, 'an empty list')
export const webUrl = text
  .refine((value) => URL.canParse(value) && /^https?:$/.test(new URL(value).protocol), 'not an http(s) URL')
  // No request can be made with one, and messages show it.
  .refine(
    (value) => !URL.canParse(value) || `${new URL(value).username}${new URL(value).password}` === '',
    'a URL with a user name or password',
  )
  .transform((value) => value.replace(/\/+$/, ''))
export const origin = webUrl
  .refine((value) => new URL(value).href === `${new URL(value).origin}/`, 'not a plain origin (https://host:port)')
  .transform((value) => new URL(value).origin)
export const host = text.regex(/^[a-z\d.-]+(:\d{1,5})?$/i, 'not a host name')
export const ip = text.refine((value) => isIP(value) !== 0, 'not an IP address')
export const page = webUrl.refine(
  (value) => !/[?#]/.test(value),
  'not a URL without query and fragment (https://host/path)',
)
export const databaseUrl = text
  .refine((value) => /^postgres(ql)?:\/\//.test(value) && URL.parse(value)?.hostname, 'not a postgres:// URL')
  // The rest of a password after a "/", "?" or "#" would be taken for a host or a database, and errors show those.
  .refine(
    (value) => !/[@]|\/.*\//.test(URL.parse(value)?.pathname ?? ''),
    'a URL with a raw /, ? or # in its password: write %2F, %3F or %23',
  )
  // The same in a URL without a database. After one, an "@" belongs to a parameter, such as "user=a@host".
  .refine(
    (value) => /^\/./.test(URL.parse(value)?.pathname ?? '') || !/[?#].*@/.test(value),
    'a URL with a raw ? or # in its password: write %3F or %23',
  )
export const smtpUrl = text.refine(
  (value) => /^smtps?:$/.test(URL.parse(value)?.protocol ?? '') && URL.parse(value)?.hostname,
  'not an smtp(s) URL',
)
export const sender = text.regex(
  /^([^<>"@,;\p{Cc}]* <[^\s@<>,;"\p{Cc}]+@[^\s@<>,;"\p{Cc}]+>|[^\s@<>,;"\p{Cc}]+@[^\s@<>,;"\p{Cc}]+)$/u,
  'not a sender (Name <a@b>)',
)
/**
 * https, or http on localhost: over plain HTTP an attacker on the network could replace the keys and sign any token.
 */
export const secureUrl = text.refine(isSecure, 'not an https URL (http is allowed for localhost only)')

/** A JWK that `read` can parse. */
export const relayKey = <Key>(read: (value: string) => Key | undefined, problem: string) =>
  z.string().transform((value, context) => {
    const key = read(value)
    if (key !== undefined) return key
    context.addIssue(problem)
    return z.NEVER
  })

export const yesOrNo = z.enum(['true', 'false'], 'neither true nor false').transform((value) => value === 'true')
export const secret = (bytes: number) =>
  text.refine((value) => Buffer.byteLength(value) >= bytes, `shorter than ${bytes} bytes`)

/** Whether the host name of a URL is a loopback address. */
export function isLoopback(hostname: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(hostname)
}

function isSecure(address: string): boolean {
  if (!URL.canParse(address)) return false
  const { protocol, hostname } = new URL(address)
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname))
}
