import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex } from '@noble/hashes/utils.js'
import { decodeBase64, encodeBase64 } from '#lib/text/base64.ts'
import type { ReferenceString } from './backend.ts'
import { KEY_BYTES } from './circuits.ts'
import { DISCLOSURE_CIRCUITS, type DisclosureCircuitName } from './disclosure-circuits.ts'
import { ProverError } from './prover-error.ts'
import { type Digests, EMBEDDED_DIGESTS, IGNITION } from './string-digests.ts'

/**
 * The verification keys of the disclosure circuits, one set for each reference string: that of real networks, and that of
 * the embedded ledger, under which anyone can prove false statements.
 */
export const KEY_SETS = ['ignition', 'embedded'] as const
export type KeySetName = (typeof KEY_SETS)[number]

export const KEY_SET_DIGESTS: Readonly<Record<KeySetName, Digests>> = {
  ignition: IGNITION,
  embedded: EMBEDDED_DIGESTS,
}

/** The passphrase of the embedded ledger with its default settings. */
const EMBEDDED_PASSPHRASE = 'Standalone Network ; February 2017'

/**
 * The set for a network whose reference string is not configured: that of the ceremony, except for the embedded ledger's default
 * passphrase. A quickstart container has that passphrase, too: name its set.
 */
export const keySetOf = (passphrase: string): KeySetName =>
  passphrase === EMBEDDED_PASSPHRASE ? 'embedded' : 'ignition'

/** The keys, and the point of the reference string that a verifier needs (128 bytes). */
export interface KeySet {
  g2: Uint8Array
  keys: ReadonlyMap<DisclosureCircuitName, Uint8Array>
}

/** @throws ProverError for a string other than the set's */
export function encodeKeySet(
  name: KeySetName,
  string: ReferenceString,
  keys: ReadonlyMap<DisclosureCircuitName, Uint8Array>,
): string {
  const digests = { g1: digestOf(string.g1), g2: digestOf(string.g2) }
  const pinned = KEY_SET_DIGESTS[name]
  if (digests.g1 !== pinned.g1 || digests.g2 !== pinned.g2) {
    throw new ProverError('files-invalid', `this is not the reference string of the set ${name}`)
  }
  const encoded = Object.fromEntries([...keys].map(([circuit, key]) => [circuit, encodeBase64(key)]))
  return `${JSON.stringify({ string: digests, g2: encodeBase64(string.g2), keys: encoded }, null, 1)}\n`
}

/** Reads the file of a set. @throws ProverError if it is damaged, or belongs to another string */
export function parseKeySet(name: KeySetName, content: Uint8Array): KeySet {
  const { string, g2, keys } = parse(name, content)
  const decoded = new Map(DISCLOSURE_CIRCUITS.map(({ name: circuit }) => [circuit, bytes(keys?.[circuit])]))
  const set = { g2: bytes(g2), keys: decoded }
  const pinned = KEY_SET_DIGESTS[name]
  const isOwn = string?.g1 === pinned.g1 && string?.g2 === pinned.g2 && digestOf(set.g2) === pinned.g2
  if (!isOwn || [...decoded.values()].some(({ length }) => length !== KEY_BYTES)) throw invalid(name)
  return set
}

interface KeySetFile {
  string?: Partial<Digests>
  g2?: unknown
  keys?: Record<string, unknown>
}

function parse(name: KeySetName, content: Uint8Array): KeySetFile {
  try {
    return JSON.parse(new TextDecoder().decode(content)) ?? {}
  } catch (cause) {
    throw invalid(name, cause)
  }
}

const invalid = (name: KeySetName, cause?: unknown) =>
  new ProverError('files-invalid', `the verification keys of the set ${name} are damaged`, { cause })

const digestOf = (content: Uint8Array): string => bytesToHex(sha256(content))
const bytes = (text: unknown): Uint8Array => decodeBase64(typeof text === 'string' ? text : '') ?? new Uint8Array()
